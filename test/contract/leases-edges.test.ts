import { memoryHarness } from '../support/lease-harness.ts';
import { leaseEdges } from './lease-contract-edges.ts';

leaseEdges('memory', memoryHarness);
