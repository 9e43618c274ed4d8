import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { LineFile } from '../../src/observe/line-file.ts'

type Watcher = ConstructorParameters<typeof LineFile>[1]
type Write = NonNullable<ConstructorParameters<typeof LineFile>[2]>

/** A log path in a folder of its own, and what the watcher was told. */
function place(t: TestContext): { path: string; dropped: number[]; failures: string[]; watcher: Watcher } {
  const folder = mkdtempSync(join(tmpdir(), 'line-file-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const dropped: number[] = []
  const failures: string[] = []
  const watcher = {
    dropped: (lines: number) => void dropped.push(lines),
    failed: (cause: Error) => void failures.push(cause.message),
  }
  return { path: join(folder, 'access.log'), dropped, failures, watcher }
}

/** What the disk does with a write: takes so many of its bytes, fails, or keeps it waiting. */
type Step = 'all' | 'hold' | Error | number

/** A disk that does what it is told, and takes all when it is told nothing. */
class ScriptedDisk {
  readonly written: string[] = []
  readonly #steps: Step[]
  #held: (() => void) | undefined

  constructor(...steps: Step[]) {
    this.#steps = steps
  }

  readonly write: Write = (_fd, bytes, offset, length, _position, done) => {
    const step = this.#steps.shift() ?? 'all'
    if (step instanceof Error) {
      setImmediate(done, step, 0)
      return
    }
    const taken = typeof step === 'number' ? step : length
    this.written.push(Buffer.from(bytes).toString('latin1', offset, offset + taken))
    if (step === 'hold') this.#held = () => done(null, taken)
    else setImmediate(done, null, taken)
  }

  release(): void {
    this.#held?.()
  }
}
const FULL = new Error('ENOSPC')

const bytes = (text: string) => Buffer.from(text, 'latin1')

test('appends to what is there, in order, and close waits for it', async t => {
  const { path, dropped, watcher } = place(t)
  writeFileSync(path, 'before\n')
  const file = new LineFile(path, watcher)
  for (let i = 0; i < 50; i++) file.write(bytes(`line ${i}\n`))
  await file.close()
  assert.equal(readFileSync(path, 'latin1'), `before\n${Array.from({ length: 50 }, (_, i) => `line ${i}\n`).join('')}`)
  assert.deepEqual(dropped, [])
})

test('a new file is closed to strangers', async t => {
  const { path, watcher } = place(t)
  await new LineFile(path, watcher).close()
  assert.equal(statSync(path).mode & 0o007, 0)
})

test('a file that cannot be opened is an error at once', t => {
  const { path, watcher } = place(t)
  assert.throws(() => new LineFile(join(path, 'missing', 'access.log'), watcher), /ENOENT/)
})

test('batches of two writers of one file never interleave', async t => {
  const { path, watcher } = place(t)
  const writers = [new LineFile(path, watcher), new LineFile(path, watcher)]
  for (let i = 0; i < 200; i++) {
    writers.forEach((file, n) => void file.write(bytes(`${`${n}`.repeat(5000)}\n`)))
  }
  await Promise.all(writers.map(file => file.close()))
  const lines = readFileSync(path, 'latin1').slice(0, -1).split('\n')
  assert.equal(lines.length, 400)
  for (const line of lines) assert.match(line, /^(0{5000}|1{5000})$/)
})

test('after reopen, lines go to a new file of the same name', async t => {
  const { path, failures, watcher } = place(t)
  const file = new LineFile(path, watcher)
  file.write(bytes('old\n'))
  await holds(path, 'old\n')
  renameSync(path, `${path}.1`)
  file.reopen()
  file.write(bytes('new\n'))
  await file.close()
  assert.equal(readFileSync(`${path}.1`, 'latin1'), 'old\n')
  assert.equal(readFileSync(path, 'latin1'), 'new\n')
  assert.deepEqual(failures, [])
})

test('a reopen that fails is reported, and the old file serves on', async t => {
  const { path, failures, watcher } = place(t)
  const folder = join(path, '..', 'logs')
  mkdirSync(folder)
  const file = new LineFile(join(folder, 'access.log'), watcher)
  renameSync(folder, `${folder}.1`)
  file.reopen()
  file.write(bytes('kept\n'))
  await file.close()
  assert.match(failures.join(), /ENOENT/)
  assert.equal(readFileSync(join(`${folder}.1`, 'access.log'), 'latin1'), 'kept\n')
})

test('a write that takes only a part is followed by the remainder', async t => {
  const { path, dropped, watcher } = place(t)
  const disk = new ScriptedDisk(3, 2, 'all')
  const file = new LineFile(path, watcher, disk.write)
  file.write(bytes('first\nsecond\n'))
  file.write(bytes('third\n'))
  await file.close()
  assert.deepEqual(disk.written, ['fir', 'st', '\nsecond\n', 'third\n'])
  assert.deepEqual(dropped, [])
})

test('a full disk is reported once, its lines are counted, and a line cut short is ended', async t => {
  const { path, dropped, failures, watcher } = place(t)
  const disk = new ScriptedDisk(10, FULL, FULL, 0, 'all', 'all', FULL)
  const file = new LineFile(path, watcher, disk.write)
  for (const batch of ['one\ntwo\nthree\n', 'four\n', 'five\nsix\n', 'seven\n', 'eight\n', 'nine\n'])
    file.write(bytes(batch))
  await file.close()
  assert.equal(disk.written.join(''), 'one\ntwo\nth\nseven\neight\n')
  assert.deepEqual(dropped, [1, 1, 2, 1])
  assert.deepEqual(failures, ['ENOSPC', 'ENOSPC'], 'once for each trouble')
})

test('a disk that is too slow costs lines, not memory', async t => {
  const { path, dropped, watcher } = place(t)
  const disk = new ScriptedDisk('hold')
  const file = new LineFile(path, watcher, disk.write)
  const megabyte = bytes(`${'x'.repeat(1024 * 1024 - 1)}\n`)
  for (let i = 0; i < 20; i++) file.write(megabyte)
  assert.equal(dropped.length, 12, 'eight megabytes wait')
  disk.release()
  await file.close()
  assert.equal(disk.written.length, 8)
})

test('what comes after close is dropped, and closing twice is no harm', async t => {
  const { path, dropped, watcher } = place(t)
  const file = new LineFile(path, watcher)
  const closing = [file.close(), file.close()]
  file.write(bytes('late\n'))
  await Promise.all([...closing, file.close()])
  assert.deepEqual(dropped, [1])
  assert.equal(readFileSync(path, 'latin1'), '')
})

/** Until the file holds `text`; a write that never comes is the test's time limit. */
async function holds(path: string, text: string): Promise<void> {
  while (readFileSync(path, 'latin1') !== text) await new Promise(resolve => setImmediate(resolve))
}
