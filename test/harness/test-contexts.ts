/**
 * Makes the test runner of Node find the test that runs by AsyncLocalStorage. The runner itself finds it with hooks
 * that Node calls for every promise and every other asynchronous resource, which takes up to half of the processor time
 * of a test with many requests. Loaded before `node:test`, whose module takes both functions when it loads.
 */
import hooks, { AsyncLocalStorage, AsyncResource, type HookCallbacks } from 'node:async_hooks'

/** The test, suite or hook that runs. */
const running = new AsyncLocalStorage<AsyncResource>()
const known = new WeakSet<AsyncResource>()
let ofRunner: HookCallbacks | null = null

/** `load` loads the runner. */
export async function withTestContexts<Runner>(load: () => Promise<Runner>): Promise<Runner> {
  const { createHook, executionAsyncId } = hooks
  hooks.createHook = callbacks => {
    ofRunner = callbacks
    const unused = { enable: () => unused, disable: () => unused }
    return unused
  }
  hooks.executionAsyncId = () => running.getStore()?.asyncId() ?? executionAsyncId()
  try {
    return await load()
  } finally {
    Object.assign(hooks, { createHook, executionAsyncId })
  }
}

const { runInAsyncScope } = AsyncResource.prototype
AsyncResource.prototype.runInAsyncScope = function runInScopeOfTest(this: AsyncResource, run, ...rest) {
  const isOfRunner = 'createSubtest' in this
  if (!isOfRunner) return Reflect.apply(runInAsyncScope, this, [run, ...rest])
  if (!known.has(this)) {
    known.add(this)
    if (ofRunner?.init === undefined) throw new Error('the test runner of this Node does not use createHook')
    // The runner learns which test has this id.
    ofRunner.init(this.asyncId(), 'Test', 0, this)
  }
  const scope: typeof run = function runInContext(...words) {
    return running.run(resource, () => Reflect.apply(run, this, words))
  }
  const resource = this
  return Reflect.apply(runInAsyncScope, this, [scope, ...rest])
}
