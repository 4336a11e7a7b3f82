import { memoryHarness } from '../support/lease-harness.ts';
import { leaseContract } from './lease-contract.ts';

leaseContract('memory', memoryHarness);
