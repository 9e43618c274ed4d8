/** Tasks of the scripted worker thread, and the memory that it shares with its test. */

/** Cells that tests and threads share: tasks that run now, the most that ever ran, tasks begun, and the gate. */
export const NOW = 0
export const MOST = 1
export const BEGUN = 2
export const GATE = 3

/** Cells of `failing-worker.ts`: threads started so far, and a bit for each start that fails. */
export const STARTS = 300
export const FAILING = 301

/** `coding`: of the body of the task; '': none. */
export type ScriptedTask = { readonly coding?: string } & (
  | { readonly kind: 'hold' | 'block' | 'count'; readonly cells: SharedArrayBuffer }
  | { readonly kind: 'compute'; readonly ms: number; readonly cells: SharedArrayBuffer }
  | { readonly kind: 'read'; readonly path: string }
  | { readonly kind: 'hang' | 'litter' | 'exhaust' | 'exit' | 'fail' | 'rest' | 'plan' }
)
