/** The scripted worker, some of whose starts end before they take a task, as the test says in memory that it shares. */
import { workerData } from 'node:worker_threads'
import type { WorkerData } from '../../src/plan/worker-plan.ts'
import { FAILING, STARTS } from './scripted-tasks.ts'

const cells = new Int32Array((workerData as WorkerData).wakes)
const start = Atomics.add(cells, STARTS, 1)
if ((Atomics.load(cells, FAILING) & (1 << start)) !== 0) process.exit(9)

export const { runTask } = await import('./scripted-worker.ts')
