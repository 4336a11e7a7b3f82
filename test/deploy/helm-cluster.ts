import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Tree } from './helm-chart.ts';

/**
 * As much of a Kubernetes API as helm asks for before it renders with `--dry-run=server`: which kinds there are, and the
 * objects that it looks up.
 */
export async function withCluster<T>(
  kinds: readonly Tree[],
  objects: Readonly<Record<string, Tree>>,
  use: (url: string) => Promise<T>,
): Promise<T> {
  const answers = new Map<string, Tree>([
    ['/version', { major: '1', minor: '35', gitVersion: 'v1.35.0' }],
    ['/api', { kind: 'APIVersions', versions: ['v1'] }],
    ...Object.entries(objects),
  ]);
  const groups = new Map<string, Tree>();
  for (const version of new Set<string>(kinds.map(({ apiVersion }) => apiVersion))) {
    const known = new Set<string>(kinds.filter(({ apiVersion }) => apiVersion === version).map(({ kind }) => kind));
    const resources = [...known].map((kind) => ({
      name: `${kind.toLowerCase()}s`,
      kind,
      namespaced: true,
      verbs: ['get'],
    }));
    const [group, short] = version.includes('/') ? version.split('/') : [null, version];
    answers.set(`/${group === null ? 'api' : 'apis'}/${version}`, {
      kind: 'APIResourceList',
      groupVersion: version,
      resources,
    });
    if (group === null) continue;
    const versions = [{ groupVersion: version, version: short }];
    groups.set(group!, { name: group, versions, preferredVersion: versions[0] });
  }
  answers.set('/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: [...groups.values()] });
  const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
  const server = createServer(({ url = '' }, response) => {
    const answer = answers.get(url.split('?')[0]!);
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? missing));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}
