/** Single steps of the decision for a known token, on a head of 1 KB in the read buffer. */
import { hash } from 'node:crypto'
import { isName, KIND } from '../../../src/http1/field-kinds.ts'
import type { Head } from '../../../src/http1/head.ts'
import { arena } from '../../../src/http1/llhttp.ts'
import { strippedKinds, putFields } from '../../../src/http1/rewrite.ts'
import { trimmedEnd } from '../../../src/http1/head-rules.ts'
import { REQUEST_SAMPLE, readHead } from '../samples.ts'
import { Worker } from 'node:worker_threads'
import { compare } from '../timing.ts'
import {
  bytes,
  allocate,
  clearSlab,
  copyOf,
  isBearer,
  isSameByBytes,
  isSameByWords,
  isSameInWasm,
  TOKEN_AT,
  TokenStore,
  tailHash,
  fullHash,
} from './token-memory.ts'
import { currentState } from './caches.ts'
import { ROW_INTS, DividedWindow, WindowObject, SharedWindows } from './throttle-windows.ts'

const NOTHING = { name: 'nothing', run: () => 0 }

export function fieldSteps(): void {
  readHead(REQUEST_SAMPLE)
  const { head } = REQUEST_SAMPLE.reader
  const { bytes: read } = arena
  const out = arena.acquire(32_768)!.offset
  const kinds = [KIND.HOST, KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_HOST, KIND.FORWARDED]
  const withAuthorization = strippedKinds(...kinds)
  const withoutAuthorization = strippedKinds(...kinds, KIND.AUTHORIZATION)
  const field = head.find(KIND.AUTHORIZATION)
  compare('The Authorization field of a classified head', [
    NOTHING,
    { name: 'find(kind)', run: () => head.find(KIND.AUTHORIZATION) },
    { name: 'find(kind), isRepeated, trimmedEnd', run: () => credentialLength(read, head) },
    { name: 'head.value(), a trimmed string', run: () => head.value(read, field) },
    { name: 'head.value() and slice(7)', run: () => head.value(read, field).slice(7) },
  ])
  compare('Copying the fields of a head for the backend', [
    { name: 'with Authorization', run: () => putFields(read, out, head, withAuthorization) },
    { name: 'additional cost without it', run: () => putFields(read, out, head, withoutAuthorization) },
  ])
}

function credentialLength(read: Buffer, head: Head): number {
  const field = head.find(KIND.AUTHORIZATION)
  if (field < 0 || head.isRepeated(KIND.AUTHORIZATION)) return -1
  return trimmedEnd(read, head, field) - head.valueAt(field)
}

export function schemeSteps(): void {
  const at = TOKEN_AT - 7
  bytes.latin1Write('Bearer ', at)
  compare('Scheme', [
    NOTHING,
    { name: '"Bearer " in any case, compared as two words and a byte', run: () => isBearer(at) },
    { name: 'the same with isName, byte by byte', run: () => isName(bytes, at, 6, 'bearer') && bytes[at + 6] === 32 },
  ])
}

export function byteSteps(length: number): void {
  const tokens = new TokenStore(64, length)
  const copies: Int32Array[] = []
  const byteCopies: Buffer[] = []
  const texts: string[] = []
  clearSlab()
  const slab = allocate(64 * 2048)
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
  compare(`A token of ${length} bytes: made a string, compared with a copy, hashed`, [
    step('the token arrives in the read buffer', () => 0),
    step('latin1Slice', () => bytes.latin1Slice(TOKEN_AT, end)),
    step('latin1Slice and ===', turn => bytes.latin1Slice(TOKEN_AT, end) === of(texts, turn)),
    step('compare: byte by byte', turn => isSameByBytes(TOKEN_AT, length, of(byteCopies, turn))),
    step('compare: four bytes at a time, in constant time', turn => isSameByWords(TOKEN_AT, length, of(copies, turn))),
    step('compare: Buffer.compare', turn => bytes.compare(of(byteCopies, turn), 0, length, TOKEN_AT, end) === 0),
    step('compare: WebAssembly, 16 bytes at a time, in constant time', turn =>
      isSameInWasm(TOKEN_AT, slab + (turn & 63) * 2048, length),
    ),
    step('hash: length and last 32 bytes', () => tailHash(TOKEN_AT, length, 7)),
    step('hash: all bytes, four at a time', () => fullHash(TOKEN_AT, length, 7)),
    step('hash: SHA-256 of a view', () => hash('sha256', bytes.subarray(TOKEN_AT, end), 'buffer')),
  ])
}

export function checkSteps(): void {
  const flags = new Int32Array(new SharedArrayBuffer(64))
  const entries = Array.from({ length: 1000 }, (_, i) => ({ expiresMs: 1e12 + i, epoch: 0 }))
  const one = (turn: number) => entries[turn % 1000]!
  compare('Checks of a found entry', [
    { name: 'one of a thousand entries', run: one },
    { name: 'expiry', run: turn => currentState.nowMs < one(turn).expiresMs },
    { name: 'version known to this thread', run: turn => one(turn).epoch === currentState.epoch },
    { name: 'shared version (Atomics.load)', run: turn => one(turn).epoch === Atomics.load(flags, 0) },
    {
      name: 'performance.now() instead of the time of the event loop turn',
      run: turn => performance.now() < one(turn).expiresMs,
    },
  ])
}

export function counterSteps(): void {
  const rows = new Int32Array(new SharedArrayBuffer(4096 * 4 * ROW_INTS))
  const four = (from: number, lengths: readonly number[]) =>
    lengths.map((lengthMs, i) => new WindowObject(rows, from + i, 2 ** 31 - 1, lengthMs))
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
  const hold = windows.counters([0, 1, 2, 3].map(minute))
  const holds = Array.from({ length: 1000 }, (_, i) => windows.counters([0, 1, 8 + 2 * i, 9 + 2 * i].map(minute)))
  const wallS = Math.floor(wallMs / 1000)
  compare('Four throttle counters in shared memory', [
    NOTHING,
    { name: 'one Atomics.add', run: () => Atomics.add(rows, 3500 * ROW_INTS, 1) },
    { name: 'four, end of the window in an object per counter', run: () => all(hot) },
    { name: 'four, two of them per token of 1,000 tokens', run: turn => all(many[turn % 1000]!) },
    { name: 'four, without objects', run: () => windows.take(hold, wallS) },
    {
      name: 'four, without objects, two of them per token of 1,000 tokens',
      run: turn => windows.take(holds[turn % 1000]!, wallS),
    },
    { name: 'four, window calculated and loaded each time', run: () => all(divided) },
    { name: 'Date.now()', run: () => Date.now() },
  ])
  const other = countElsewhere(rows.buffer)
  const contended = [
    { name: 'the pause between two requests', run: pause },
    { name: 'four, end of the window in an object per counter', run: () => all(hot) && pause() },
  ]
  compare('Four throttle counters that another reactor counts every 20 us', contended, 'threadCpuUsage')
  void other.terminate()
}

/** A few microseconds between two requests. */
function pause(): number {
  let sum = 0
  for (let i = 0; i < 4000; i++) sum = (sum + i) ^ (sum >>> 3)
  return sum
}

/** Another thread that counts the same counters 50,000 times a second. */
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
