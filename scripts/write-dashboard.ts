import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dashboardText } from './dashboard.ts';

/** Writes the Grafana dashboard from the rows in dashboard.ts. */
await writeFile(join(import.meta.dirname, '../helm/sandbox-broker/files/dashboard.json'), dashboardText());
