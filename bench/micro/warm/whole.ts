/** The whole of it, as it would run: from a classified head to four counters taken. */
import { KIND } from '../../../src/http1/field-kinds.ts'
import { Head } from '../../../src/http1/head.ts'
import { trimmedEnd } from '../../../src/http1/strictness.ts'
import { compare } from './rounds.ts'
import { bytes, clearSlab, isBearer, TOKEN_AT, TokenStore } from './token-memory.ts'
import {
  ByHash,
  ByHashInSlab,
  ByText,
  compareBuffer,
  type Connection,
  type Grant,
  inForce,
  RememberedByHash,
  type Verdicts,
} from './verdicts.ts'
import { type Hold, ROW_INTS, SharedWindows } from './windows.ts'

const SPACE = 32
const FIELDS = 10
const CREDENTIAL_FIELD = 5

interface WarmGrant extends Grant {
  readonly hold: Hold
}

const API = {}
const RESOURCE_MASK = 4
const flags = new Int32Array(new SharedArrayBuffer(64))
const rows = new Int32Array(new SharedArrayBuffer(4 * ROW_INTS * 4096))
const windows = new SharedWindows(rows)

/** A head of ten fields as the reader leaves it, with the token at its place. */
function headWith(length: number): Head {
  const head = new Head(128)
  head.count = FIELDS
  head.kinds.set([KIND.HOST, KIND.USER_AGENT, 0, 0, 0, KIND.CORRELATION, KIND.ORIGIN, KIND.REFERER, 0, 0])
  head.present = (1 << KIND.HOST) | (1 << KIND.CORRELATION)
  head.spans[4 * CREDENTIAL_FIELD + 2] = TOKEN_AT - 7
  head.spans[4 * CREDENTIAL_FIELD + 3] = length + 7
  bytes.latin1Write('Bearer ', TOKEN_AT - 7)
  bytes.latin1Write('\r\n', TOKEN_AT + length)
  return head
}

/** The token begins at TOKEN_AT in every head of this bench; 0: there is none. */
function tokenLength(head: Head): number {
  const field = head.find(KIND.CORRELATION)
  if (field < 0 || head.isRepeated(KIND.CORRELATION)) return 0
  let at = head.valueAt(field)
  const end = trimmedEnd(bytes, head, field)
  if (end - at < 8 || !isBearer(at)) return 0
  at += 7
  while (bytes[at] === SPACE) at++
  return end - at
}

const grants = new WeakMap<object, WarmGrant>()

function admit(head: Head, connection: Connection, verdicts: Verdicts, wallS: number, counts: boolean): boolean {
  if (Atomics.load(flags, 0) !== inForce.epoch) return false
  const length = tokenLength(head)
  if (length === 0) return false
  const entry = verdicts.find(connection, length)
  if (entry === null) return false
  let grant = entry.grant as WarmGrant | null
  if (grant === null || grant.api !== API) {
    grant = makeGrant(entry)
    entry.grant = grant
  }
  if (grant.refusal !== null || (grant.scopeMask & RESOURCE_MASK) === 0) return false
  if (!counts) return true
  return windows.take(grant.hold, wallS) < 0
}

let nextRow = 2

/** API and resource are counted by all, application and subscription by token. */
function makeGrant(entry: object): WarmGrant {
  let grant = grants.get(entry)
  if (grant === undefined) {
    nextRow = nextRow + 4 < 4096 ? nextRow + 2 : 2
    const limit = 2 ** 31 - 1
    const hold = windows.hold([0, 1, nextRow, nextRow + 1].map(row => ({ row, limit, lengthS: 60 })))
    grant = { api: API, scopeMask: 4, refusal: null, hold }
    grants.set(entry, grant)
  }
  return grant
}

export function whole(length: number): void {
  const tokens = new TokenStore(1000, length)
  const head = headWith(length)
  clearSlab()
  const wallS = Math.floor(Date.now() / 1000)
  const byText = new ByText(tokens)
  const byHash = new ByHash(tokens)
  const inSlab = new ByHashInSlab(tokens)
  const plain = new ByHashInSlab(tokens, compareBuffer)
  const step = (name: string, verdicts: Verdicts | null, tokenOf: (turn: number) => number, counts: boolean) => {
    const connections: Connection[] = Array.from({ length: 64 }, () => ({ entry: null }))
    return {
      name,
      run: (turn: number) => {
        tokens.arrive(tokenOf(turn))
        if (verdicts === null) return turn
        if (!admit(head, connections[turn & 63]!, verdicts, wallS, counts)) throw new Error('a warm token was refused')
        return true
      },
    }
  }
  const own = (turn: number) => turn & 63
  const another = (turn: number) => ((turn * 7919) >>> 0) % 1000
  compare(`From the classified head to the decision, ${length} bytes, 1,000 tokens, 64 connections`, [
    step('the token arrives in the read buffer', null, own, false),
    step('c+h, each connection keeps its token, no counters', new RememberedByHash(inSlab), own, false),
    step('c+h, each connection keeps its token, four counters', new RememberedByHash(inSlab), own, true),
    step('c+h, another token with each request, four counters', new RememberedByHash(inSlab), another, true),
    step('h, each connection keeps its token, four counters', inSlab, own, true),
    step('h, another token with each request, four counters', inSlab, another, true),
    step('h with Buffer.compare, each connection keeps its token, four counters', plain, own, true),
    step('h with Buffer.compare, another token with each request, four counters', plain, another, true),
    step('g, each connection keeps its token, four counters', byHash, own, true),
    step('g, another token with each request, four counters', byHash, another, true),
    step('b, each connection keeps its token, four counters', byText, own, true),
    step('b, another token with each request, four counters', byText, another, true),
  ])
}
