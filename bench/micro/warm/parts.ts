/** What the parts of a warm request cost alone, on a head of 1 KB as it stands in the read buffer. */
import { hash } from 'node:crypto'
import { FieldKinds, isName, KIND } from '../../../src/http1/field-kinds.ts'
import type { Head } from '../../../src/http1/head.ts'
import { arena } from '../../../src/http1/llhttp.ts'
import { drops, putFields } from '../../../src/http1/rewrite.ts'
import { trimmedEnd } from '../../../src/http1/strictness.ts'
import { REQUEST_SAMPLE, readHead } from '../samples.ts'
import { Worker } from 'node:worker_threads'
import { compare } from './rounds.ts'
import {
  bytes,
  carve,
  clearSlab,
  copyOf,
  isBearer,
  isSameByBytes,
  isSameByWords,
  isSameInWasm,
  TOKEN_AT,
  TokenStore,
  tailHash,
  wholeHash,
} from './token-memory.ts'
import { inForce } from './verdicts.ts'
import { ROW_INTS, DividedWindow, SharedWindow, SharedWindows } from './windows.ts'

const NOTHING = { name: 'nothing', run: () => 0 }

/** The correlation field stands in for Authorization, which has no kind yet: one more name to tell apart. */
const CREDENTIAL = KIND.CORRELATION

export function fieldParts(): void {
  readHead(REQUEST_SAMPLE)
  const { head } = REQUEST_SAMPLE.reader
  const { bytes: read } = arena
  const without = new FieldKinds('activityid')
  const withCredential = new FieldKinds('authorization')
  const out = arena.lend(32_768)!.offset
  const kept = [KIND.HOST, KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_HOST, KIND.FORWARDED]
  const passing = drops(...kept)
  const removing = drops(...kept, CREDENTIAL)
  compare('Telling the fields of a head apart (10 fields)', [
    { name: 'without a kind for Authorization', run: () => without.classify(read, head) },
    { name: 'more with one', run: () => withCredential.classify(read, head) },
  ])
  head.present = 0
  withCredential.classify(read, head)
  const field = head.find(CREDENTIAL)
  compare('The Authorization field of a classified head', [
    NOTHING,
    { name: 'find(kind)', run: () => head.find(CREDENTIAL) },
    { name: 'find(kind), isRepeated, trimmedEnd', run: () => credential(read, head) },
    { name: 'head.value(): a string, trimmed', run: () => head.value(read, field) },
    { name: 'head.value() and slice(7)', run: () => head.value(read, field).slice(7) },
  ])
  compare('Copying the fields that pass into the head for the backend', [
    { name: 'Authorization passes', run: () => putFields(read, out, head, passing) },
    { name: 'more (less) when it is left out', run: () => putFields(read, out, head, removing) },
  ])
}

function credential(read: Buffer, head: Head): number {
  const field = head.find(CREDENTIAL)
  if (field < 0 || head.isRepeated(CREDENTIAL)) return -1
  return trimmedEnd(read, head, field) - head.valueAt(field)
}

export function schemeParts(): void {
  const at = TOKEN_AT - 7
  bytes.latin1Write('Bearer ', at)
  compare('Scheme', [
    NOTHING,
    { name: '"Bearer " in any case: two words and a byte', run: () => isBearer(at) },
    { name: 'the same with isName, a byte a step', run: () => isName(bytes, at, 6, 'bearer') && bytes[at + 6] === 32 },
  ])
}

export function byteParts(length: number): void {
  const tokens = new TokenStore(64, length)
  const copies: Int32Array[] = []
  const byteCopies: Buffer[] = []
  const texts: string[] = []
  clearSlab()
  const slab = carve(64 * 2048)
  for (let token = 0; token < 64; token++) {
    tokens.arrive(token)
    const copy = copyOf(TOKEN_AT, length)
    copies.push(copy)
    byteCopies.push(Buffer.from(copy.buffer))
    texts.push(bytes.latin1Slice(TOKEN_AT, TOKEN_AT + length))
    bytes.copyWithin(slab + token * 2048, TOKEN_AT, TOKEN_AT + length)
  }
  const end = TOKEN_AT + length
  const of = <T>(all: readonly T[], turn: number): T => all[turn & 63]!
  const step = (name: string, run: (turn: number) => unknown) => ({
    name,
    run: (turn: number) => {
      tokens.arrive(turn & 63)
      return run(turn)
    },
  })
  compare(`A token of ${length} bytes: made a string, hashed, compared with its copy`, [
    step('the token arrives in the read buffer', () => 0),
    step('latin1Slice', () => bytes.latin1Slice(TOKEN_AT, end)),
    step('latin1Slice and ===', turn => bytes.latin1Slice(TOKEN_AT, end) === of(texts, turn)),
    step('compare: a byte a step', turn => isSameByBytes(TOKEN_AT, length, of(byteCopies, turn))),
    step('compare: four bytes a step, no way out', turn => isSameByWords(TOKEN_AT, length, of(copies, turn))),
    step('compare: Buffer.compare', turn => bytes.compare(of(byteCopies, turn), 0, length, TOKEN_AT, end) === 0),
    step('compare: WebAssembly, 16 bytes a step, no way out', turn =>
      isSameInWasm(TOKEN_AT, slab + (turn & 63) * 2048, length),
    ),
    step('hash: length and last 32 bytes', () => tailHash(TOKEN_AT, length, 7)),
    step('hash: every byte, four a step', () => wholeHash(TOKEN_AT, length, 7)),
    step('hash: SHA-256 of a view', () => hash('sha256', bytes.subarray(TOKEN_AT, end), 'buffer')),
  ])
}

export function checkParts(): void {
  const flags = new Int32Array(new SharedArrayBuffer(64))
  const entries = Array.from({ length: 1000 }, (_, i) => ({ expiresMs: 1e12 + i, epoch: 0 }))
  const one = (turn: number) => entries[turn % 1000]!
  compare('Checks of a found entry', [
    { name: 'one of a thousand entries', run: one },
    { name: 'expiry', run: turn => inForce.nowMs < one(turn).expiresMs },
    { name: 'epoch of this thread', run: turn => one(turn).epoch === inForce.epoch },
    { name: 'epoch of all threads (Atomics.load)', run: turn => one(turn).epoch === Atomics.load(flags, 0) },
    {
      name: 'performance.now() in place of the clock of the request',
      run: turn => performance.now() < one(turn).expiresMs,
    },
  ])
}

export function counterParts(): void {
  const rows = new Int32Array(new SharedArrayBuffer(4096 * 4 * ROW_INTS))
  const four = (from: number, lengths: readonly number[]) =>
    lengths.map((lengthMs, i) => new SharedWindow(rows, from + i, 2 ** 31 - 1, lengthMs))
  const hot = four(3010, [60_000, 60_000, 1000, 3_600_000])
  const many = Array.from({ length: 1000 }, (_, i) => [hot[0]!, hot[1]!, ...four(8 + 2 * i, [60_000, 60_000])])
  const divided = [60_000, 60_000, 1000, 3_600_000].map((ms, i) => new DividedWindow(rows, 3000 + i, 2 ** 31 - 1, ms))
  const wallMs = Date.now()
  const all = (windows: readonly { take(wallMs: number): boolean }[]): boolean => {
    for (let i = 0; i < windows.length; i++) if (!windows[i]!.take(wallMs)) return false
    return true
  }
  const windows = new SharedWindows(rows)
  const minute = (row: number) => ({ row, limit: 2 ** 31 - 1, lengthS: 60 })
  const hold = windows.hold([0, 1, 2, 3].map(minute))
  const holds = Array.from({ length: 1000 }, (_, i) => windows.hold([0, 1, 8 + 2 * i, 9 + 2 * i].map(minute)))
  const wallS = Math.floor(wallMs / 1000)
  compare('Four throttle counters in shared memory', [
    NOTHING,
    { name: 'one Atomics.add', run: () => Atomics.add(rows, 3500 * ROW_INTS, 1) },
    { name: 'four, end of the window kept by the thread', run: () => all(hot) },
    { name: 'four, two of them another for each of 1,000 tokens', run: turn => all(many[turn % 1000]!) },
    { name: 'four, no object for a counter', run: () => windows.take(hold, wallS) },
    {
      name: 'four, no object, two of them another for each of 1,000 tokens',
      run: turn => windows.take(holds[turn % 1000]!, wallS),
    },
    { name: 'four, window divided out and loaded each time', run: () => all(divided) },
    { name: 'Date.now()', run: () => Date.now() },
  ])
  const other = countElsewhere(rows.buffer)
  const contended = [
    { name: 'the pause between two requests', run: pause },
    { name: 'four, end of the window kept by the thread', run: () => all(hot) && pause() },
  ]
  compare('Four throttle counters that another reactor takes every 20 us', contended, 'threadCpuUsage')
  void other.terminate()
}

/** Some microseconds in which the other thread has its turn. */
function pause(): number {
  let sum = 0
  for (let i = 0; i < 4000; i++) sum = (sum + i) ^ (sum >>> 3)
  return sum
}

/** Another reactor at 50,000 requests a second, with the same counters. */
function countElsewhere(shared: ArrayBufferLike): Worker {
  const started = new Int32Array(new SharedArrayBuffer(4))
  const code = `
    const { shared, started } = require('node:worker_threads').workerData
    const rows = new Int32Array(shared)
    Atomics.store(started, 0, 1)
    Atomics.notify(started, 0)
    for (let next = performance.now(); ; ) {
      for (let row = 0; row < 4; row++) Atomics.add(rows, (3010 + row) * ${ROW_INTS} + 1, 1)
      next = Math.max(next + 0.02, performance.now() - 1)
      while (performance.now() < next);
    }`
  const worker = new Worker(code, { eval: true, workerData: { shared, started } })
  Atomics.wait(started, 0, 0, 5000)
  return worker
}
