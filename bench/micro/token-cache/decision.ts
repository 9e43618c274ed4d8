/** The complete decision for a known token: from a classified head to four throttle counters. */
import { KIND } from '../../../src/http1/field-kinds.ts'
import { Head } from '../../../src/http1/head.ts'
import { trimmedEnd } from '../../../src/http1/head-rules.ts'
import { compare } from '../timing.ts'
import { bytes, clearSlab, isBearer, TOKEN_AT, TokenStore } from './token-memory.ts'
import {
  ByHashWithCopies,
  ByHashInSlab,
  ByTokenText,
  compareWithBuffer,
  type Connection,
  type Grant,
  currentState,
  PerConnectionByHash,
  type TokenCache,
} from './caches.ts'
import { type Counters, ROW_INTS, SharedWindows } from './throttle-windows.ts'

const SPACE = 32
const FIELDS = 10
const CREDENTIAL_FIELD = 5

interface CountedGrant extends Grant {
  readonly counters: Counters
}

const API = {}
const RESOURCE_MASK = 4
const flags = new Int32Array(new SharedArrayBuffer(64))
const rows = new Int32Array(new SharedArrayBuffer(4 * ROW_INTS * 4096))
const windows = new SharedWindows(rows)

/** A classified head of ten fields, one of them with the token. */
function headWithToken(length: number): Head {
  const head = new Head(128)
  head.count = FIELDS
  head.kinds.set([KIND.HOST, KIND.USER_AGENT, 0, 0, 0, KIND.AUTHORIZATION, KIND.ORIGIN, KIND.REFERER, 0, 0])
  head.present = (1 << KIND.HOST) | (1 << KIND.AUTHORIZATION)
  head.spans[4 * CREDENTIAL_FIELD + 2] = TOKEN_AT - 7
  head.spans[4 * CREDENTIAL_FIELD + 3] = length + 7
  bytes.latin1Write('Bearer ', TOKEN_AT - 7)
  bytes.latin1Write('\r\n', TOKEN_AT + length)
  return head
}

/** Length of the bearer token in the head; 0 for none. It always begins at TOKEN_AT. */
function tokenLength(head: Head): number {
  const field = head.find(KIND.AUTHORIZATION)
  if (field < 0 || head.isRepeated(KIND.AUTHORIZATION)) return 0
  let at = head.valueAt(field)
  const end = trimmedEnd(bytes, head, field)
  if (end - at < 8 || !isBearer(at)) return 0
  at += 7
  while (bytes[at] === SPACE) at++
  return end - at
}

const grants = new WeakMap<object, CountedGrant>()

function decide(head: Head, connection: Connection, cache: TokenCache, wallS: number, counts: boolean): boolean {
  if (Atomics.load(flags, 0) !== currentState.epoch) return false
  const length = tokenLength(head)
  if (length === 0) return false
  const entry = cache.find(connection, length)
  if (entry === null) return false
  let grant = entry.grant as CountedGrant | null
  if (grant === null || grant.api !== API) {
    grant = makeGrant(entry)
    entry.grant = grant
  }
  if (grant.refusal !== null || (grant.scopeMask & RESOURCE_MASK) === 0) return false
  if (!counts) return true
  return windows.take(grant.counters, wallS) < 0
}

let nextRow = 2

/** Two counters for all tokens (API, resource), two for this token (application, subscription). */
function makeGrant(entry: object): CountedGrant {
  let grant = grants.get(entry)
  if (grant === undefined) {
    nextRow = nextRow + 4 < 4096 ? nextRow + 2 : 2
    const limit = 2 ** 31 - 1
    const counters = windows.counters([0, 1, nextRow, nextRow + 1].map(row => ({ row, limit, lengthS: 60 })))
    grant = { api: API, scopeMask: 4, refusal: null, counters }
    grants.set(entry, grant)
  }
  return grant
}

export function decision(length: number): void {
  const tokens = new TokenStore(1000, length)
  const head = headWithToken(length)
  clearSlab()
  const wallS = Math.floor(Date.now() / 1000)
  const inSlab = new ByHashInSlab(tokens)
  const caches: readonly (readonly [string, TokenCache])[] = [
    ['per connection by hash, else LRU by hash, slab', new PerConnectionByHash(inSlab)],
    ['LRU by hash, slab, WebAssembly', inSlab],
    ['LRU by hash, slab, Buffer.compare', new ByHashInSlab(tokens, compareWithBuffer)],
    ['LRU by hash, a typed array per token', new ByHashWithCopies(tokens)],
    ['LRU by text', new ByTokenText(tokens)],
  ]
  const step = (name: string, cache: TokenCache, tokenOf: (turn: number) => number, counts: boolean) => {
    const connections: Connection[] = Array.from({ length: 64 }, () => ({ entry: null }))
    return {
      name,
      run: (turn: number) => {
        tokens.arrive(tokenOf(turn))
        if (!decide(head, connections[turn & 63]!, cache, wallS, counts)) throw new Error('a known token was refused')
        return true
      },
    }
  }
  const sameToken = (turn: number) => turn & 63
  const otherToken = (turn: number) => ((turn * 7919) >>> 0) % 1000
  compare(`From the classified head to the decision, ${length} bytes, 1,000 tokens, 64 connections`, [
    { name: 'the token arrives in the read buffer', run: turn => tokens.arrive(sameToken(turn)) },
    step('the first cache below, one token per connection, no counters', caches[0]![1], sameToken, false),
    ...caches.flatMap(([name, cache]) => [
      step(`${name}, one token per connection`, cache, sameToken, true),
      step(`${name}, tokens in turn`, cache, otherToken, true),
    ]),
  ])
}
