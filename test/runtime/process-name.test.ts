import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const MODULE = new URL('../../src/runtime/process-name.ts', import.meta.url).href
/** Prints the name on the main thread, on a thread, and on a thread of that thread. */
const PROGRAM = `
  import { nameProcess, processName } from '${MODULE}'
  import { isMainThread, Worker } from 'node:worker_threads'
  if (isMainThread) nameProcess()
  console.log(processName())
  const { depth = 0 } = (await import('node:worker_threads')).workerData ?? {}
  if (depth < 2) new Worker(new URL(import.meta.url), { workerData: { depth: depth + 1 } })
`

function namesOfProcess(): readonly string[] {
  const url = `data:text/javascript,${encodeURIComponent(PROGRAM)}`
  const words = ['--input-type=module', '--eval', `await import(${JSON.stringify(url)})`]
  return execFileSync(process.execPath, words, { encoding: 'utf8' }).trim().split('\n')
}

test('all threads of a process have one name, and each process has another one', () => {
  const [first, second] = [namesOfProcess(), namesOfProcess()]
  assert.deepEqual([first.length, second.length], [3, 3])
  assert.deepEqual([new Set(first).size, new Set(second).size], [1, 1])
  const randomOf = ([name]: readonly string[]): string => name!.split(':').at(-1)!
  assert.match(randomOf(first), /^[\da-f]{24}$/)
  assert.notEqual(randomOf(first), randomOf(second))
})
