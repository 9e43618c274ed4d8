import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const MODULE = new URL('../../src/runtime/process-name.ts', import.meta.url).href
const folder = mkdtempSync(join(tmpdir(), 'sluice-process-'))
after(() => rmSync(folder, { recursive: true }))

/** Prints the name on the main thread, on a thread, and on a thread of that thread. */
const NAMES = `
  import { nameProcess, processName } from '${MODULE}'
  import { isMainThread, Worker, workerData } from 'node:worker_threads'
  if (isMainThread) nameProcess('${folder}')
  console.log(processName())
  const { depth = 0 } = workerData ?? {}
  if (depth < 2) new Worker(new URL(import.meta.url), { workerData: { depth: depth + 1 } })
`

/** Prints on a thread whether each of the names is that of a process that is gone; then records its own name. */
const GONE = `
  import { isGoneProcess, nameProcess, processName, recordProcessName } from '${MODULE}'
  import { once } from 'node:events'
  import { isMainThread, Worker } from 'node:worker_threads'
  const names = JSON.parse(process.env.NAMES)
  if (isMainThread) {
    nameProcess('${folder}')
    await once(new Worker(new URL(import.meta.url)), 'exit')
    recordProcessName('${folder}')
  } else console.log(JSON.stringify([...names, processName()].map(isGoneProcess)))
`

function run(program: string, names: readonly string[] = []): string {
  const url = `data:text/javascript,${encodeURIComponent(program)}`
  const words = ['--input-type=module', '--eval', `await import(${JSON.stringify(url)})`]
  const env = { ...process.env, NAMES: JSON.stringify(names) }
  return execFileSync(process.execPath, words, { encoding: 'utf8', env }).trim()
}

test('all threads of a process have one name, and each process has another one', () => {
  const [first = [], second = []] = [run(NAMES).split('\n'), run(NAMES).split('\n')]
  assert.deepEqual([first.length, second.length], [3, 3])
  assert.deepEqual([new Set(first).size, new Set(second).size], [1, 1])
  const randomOf = ([name]: readonly string[]): string => name!.split(':').at(-1)!
  assert.match(randomOf(first), /^[\da-f]{24}$/)
  assert.notEqual(randomOf(first), randomOf(second))
})

test('the process before this one in the data folder is gone once it has ended; of others nobody knows', () => {
  assert.equal(run(GONE, ['']), '[false,false]')
  const before = readFileSync(join(folder, 'process'), 'utf8')
  const [host, pid] = before.split(':')
  const others = [`${host}:${pid}:${'0'.repeat(24)}`, 'another:1:00', '']
  assert.equal(run(GONE, [before, ...others]), '[true,false,false,false,false]')
  for (const [name, why] of [
    [`${hostname()}:${process.pid}:00`, 'it lives'],
    [`another-${hostname()}:${pid}:00`, 'it ran on another host, from which the folder was copied'],
    ['a text', 'it is no name'],
  ] as const) {
    writeFileSync(join(folder, 'process'), name)
    assert.equal(run(GONE, [name]), '[false,false]', why)
  }
})
