/** A worker thread: the kinds of tasks that it runs. */
import { flowRunner } from './flow-runner.ts'
import { mountedRunner } from './mounted-runner.ts'
import { OpenedApis } from './opened-apis.ts'
import { serveTasks } from './task-server.ts'
import { dueRunner, jobRunner } from './work-runner.ts'

export const runTask = serveTasks(context => {
  const apis = new OpenedApis(context)
  return {
    flow: flowRunner(context),
    mounted: mountedRunner(context, apis),
    due: dueRunner(apis),
    job: jobRunner(context, apis),
  }
})
