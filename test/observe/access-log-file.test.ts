/** Access log file: appending, rotation, slow and full disks. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AccessLogFile } from '../../src/observe/access-log-file.ts'

type Callbacks = ConstructorParameters<typeof AccessLogFile>[1]
type Write = NonNullable<ConstructorParameters<typeof AccessLogFile>[2]>

/** Creates a temporary folder with a log path, and callbacks that record. */
function temporaryLog(t: TestContext): { path: string; dropped: number[]; failures: string[]; callbacks: Callbacks } {
  const folder = mkdtempSync(join(tmpdir(), 'access-log-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const dropped: number[] = []
  const failures: string[] = []
  const callbacks = {
    onDropped: (lines: number) => void dropped.push(lines),
    onFailed: (cause: Error) => void failures.push(cause.message),
    onRecovered: () => void failures.push('recovered'),
  }
  return { path: join(folder, 'access.log'), dropped, failures, callbacks }
}

/** Result of a write: all bytes, so many bytes, an error, or none until `release`. */
type Step = 'all' | 'hold' | Error | number

/** A disk that follows a script and then accepts everything. */
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

test('writes append in order, and close() waits for them', async t => {
  const { path, dropped, callbacks } = temporaryLog(t)
  writeFileSync(path, 'before\n')
  const file = new AccessLogFile(path, callbacks)
  for (let i = 0; i < 50; i++) file.write(bytes(`line ${i}\n`))
  await file.close()
  assert.equal(readFileSync(path, 'latin1'), `before\n${Array.from({ length: 50 }, (_, i) => `line ${i}\n`).join('')}`)
  assert.deepEqual(dropped, [])
})

test('other users cannot read a new file', async t => {
  const { path, callbacks } = temporaryLog(t)
  await new AccessLogFile(path, callbacks).close()
  assert.equal(statSync(path).mode & 0o007, 0)
})

test('a file that cannot be opened throws', t => {
  const { path, callbacks } = temporaryLog(t)
  assert.throws(() => new AccessLogFile(join(path, 'missing', 'access.log'), callbacks), /ENOENT/)
})

test('batches of two writers to one file never interleave', async t => {
  const { path, callbacks } = temporaryLog(t)
  const writers = [new AccessLogFile(path, callbacks), new AccessLogFile(path, callbacks)]
  for (let i = 0; i < 200; i++) {
    writers.forEach((file, n) => void file.write(bytes(`${`${n}`.repeat(5000)}\n`)))
  }
  await Promise.all(writers.map(file => file.close()))
  const lines = readFileSync(path, 'latin1').slice(0, -1).split('\n')
  assert.equal(lines.length, 400)
  for (const line of lines) assert.match(line, /^(0{5000}|1{5000})$/)
})

test('reopen() writes to a new file of the same name', async t => {
  const { path, failures, callbacks } = temporaryLog(t)
  const file = new AccessLogFile(path, callbacks)
  file.write(bytes('old\n'))
  await fileHolds(path, 'old\n')
  renameSync(path, `${path}.1`)
  file.reopen()
  file.write(bytes('new\n'))
  await file.close()
  assert.equal(readFileSync(`${path}.1`, 'latin1'), 'old\n')
  assert.equal(readFileSync(path, 'latin1'), 'new\n')
  assert.deepEqual(failures, [])
})

test('a reopen() that fails is reported, keeps the old file, and is tried again', async t => {
  const { path, failures, callbacks } = temporaryLog(t)
  const folder = join(path, '..', 'logs')
  mkdirSync(folder)
  const file = new AccessLogFile(join(folder, 'access.log'), callbacks)
  renameSync(folder, `${folder}.1`)
  file.reopen()
  file.write(bytes('kept\n'))
  await fileHolds(join(`${folder}.1`, 'access.log'), 'kept\n')
  assert.match(failures.join(), /^ENOENT[^,]*,[^,]*$/, 'one failure, and no recovery')
  mkdirSync(folder)
  file.write(bytes('again\n'))
  await file.close()
  assert.equal(failures.length, 2)
  assert.equal(failures[1], 'recovered')
  assert.equal(readFileSync(join(folder, 'access.log'), 'latin1'), 'again\n')
})

test('the rest of a partial write follows', async t => {
  const { path, dropped, callbacks } = temporaryLog(t)
  const disk = new ScriptedDisk(3, 2, 'all')
  const file = new AccessLogFile(path, callbacks, disk.write)
  file.write(bytes('first\nsecond\n'))
  file.write(bytes('third\n'))
  await file.close()
  assert.deepEqual(disk.written, ['fir', 'st', '\nsecond\n', 'third\n'])
  assert.deepEqual(dropped, [])
})

test('a full disk is reported once, dropped lines are counted, and an incomplete line is ended', async t => {
  const { path, dropped, failures, callbacks } = temporaryLog(t)
  const disk = new ScriptedDisk(10, FULL, FULL, 0, 'all', 'all', FULL)
  const file = new AccessLogFile(path, callbacks, disk.write)
  for (const batch of ['one\ntwo\nthree\n', 'four\n', 'five\nsix\n', 'seven\n', 'eight\n', 'nine\n'])
    file.write(bytes(batch))
  await file.close()
  assert.equal(disk.written.join(''), 'one\ntwo\nth\nseven\neight\n')
  assert.deepEqual(dropped, [1, 1, 2, 1])
  assert.deepEqual(failures, ['ENOSPC', 'recovered', 'ENOSPC'], 'once per series of failures')
})

test('a slow disk costs lines beyond 8 MiB, and no more memory', async t => {
  const { path, dropped, failures, callbacks } = temporaryLog(t)
  const disk = new ScriptedDisk('hold')
  const file = new AccessLogFile(path, callbacks, disk.write)
  const megabyte = bytes(`${'x'.repeat(1024 * 1024 - 1)}\n`)
  for (let i = 0; i < 20; i++) file.write(megabyte)
  assert.equal(dropped.length, 12, '8 MiB wait')
  assert.match(failures.join(), /^the disk is too slow: 8388608 bytes wait, and further lines are dropped$/)
  disk.release()
  await file.close()
  assert.equal(disk.written.length, 8)
  assert.equal(failures[1], 'recovered')
})

test('a batch is given back once, behind its last byte or its failure, and at once where it is dropped', async t => {
  const { path, callbacks } = temporaryLog(t)
  const disk = new ScriptedDisk('hold', 2, 'all', FULL)
  const file = new AccessLogFile(path, callbacks, disk.write)
  const givenBack: string[] = []
  for (const batch of ['held\n', 'in two parts\n', 'lost\n']) {
    file.write(bytes(batch), () => void givenBack.push(`${batch.trim()} behind ${disk.written.length} writes`))
  }
  assert.equal(givenBack.length, 0)
  disk.release()
  await file.close()
  file.write(bytes('late\n'), () => void givenBack.push('late'))
  assert.deepEqual(givenBack, ['held behind 1 writes', 'in two parts behind 3 writes', 'lost behind 3 writes', 'late'])
})

test('batches after close() are dropped, and close() may be called again', async t => {
  const { path, dropped, callbacks } = temporaryLog(t)
  const file = new AccessLogFile(path, callbacks)
  const closing = [file.close(), file.close()]
  file.write(bytes('late\n'))
  await Promise.all([...closing, file.close()])
  assert.deepEqual(dropped, [1])
  assert.equal(readFileSync(path, 'latin1'), '')
})

/** Waits until the file holds `text`. */
async function fileHolds(path: string, text: string): Promise<void> {
  while (readFileSync(path, 'latin1') !== text) await new Promise(resolve => setImmediate(resolve))
}
