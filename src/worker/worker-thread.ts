/** A worker thread: the kinds of tasks that it runs. */
import { flowRunner } from './flow-runner.ts'
import { mountedRunner } from './mounted-runner.ts'
import { serveTasks } from './task-server.ts'

export const runTask = serveTasks(context => ({ flow: flowRunner(context), mounted: mountedRunner(context) }))
