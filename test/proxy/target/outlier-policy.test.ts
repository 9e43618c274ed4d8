/** Outlier policy: which failures count against an endpoint, by themselves or in a row. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classifyFailure } from '../../../src/proxy/target/outlier-policy.ts'

type Codes = readonly number[]
type Effect = ReturnType<typeof classifyFailure>
/** Not at its defaults: what the case is about. */
interface Circumstances {
  /** Of an endpoint that no other replaces, or that configures nothing: false. */
  readonly each?: boolean
  readonly timeoutCodes?: Codes
  readonly suspendCodes?: Codes
  readonly retries?: number
  readonly reused?: boolean
  readonly upgrade?: string
  readonly kind?: 'transport' | 'proxy'
  /** The request was sent. */
  readonly sent?: boolean
}
const EACH: Circumstances = { each: true }

/** [case, base, state, circumstances, effect]. */
const CASES: readonly (readonly [string, number, number, Circumstances, Effect])[] = [
  // Every endpoint.
  ['connection refused', 101503, 0, {}, 'suspension'],
  ['connection refused, in a group', 101503, 0, EACH, 'suspension'],
  ['connect timed out', 101508, 0, {}, 'suspension'],
  ['a proxy that refuses CONNECT', 101503, 0, { kind: 'proxy' }, 'suspension'],
  ['a proxy that answers a request with 407', 101503, 0, { kind: 'proxy', sent: true }, 'in-a-row'],
  [
    'a proxy that answers a request with 407, in a group',
    101503,
    0,
    { ...EACH, kind: 'proxy', sent: true },
    'in-a-row',
  ],
  ['an idle connection that was closed meanwhile', 101505, 3, { reused: true }, 'ignored'],
  ['an idle connection that was reset meanwhile', 101501, 3, { ...EACH, reused: true }, 'ignored'],
  ['a listed code on a reused connection', 101505, 3, { suspendCodes: [101505], reused: true }, 'suspension'],
  ['the connection limit is reached', 101600, 0, EACH, 'ignored'],
  ['no memory is left, though its code is listed', 101601, 0, { suspendCodes: [101601] }, 'ignored'],
  ['the client left', 101509, 3, EACH, 'ignored'],
  ['a bug of the gateway', 101510, 3, EACH, 'ignored'],
  ['a response that was cut short in its head', 101505, 4, EACH, 'ignored'],
  ['a response that was cut short in its body', 101504, 5, EACH, 'ignored'],
  // What belongs to one exchange.
  ['closed within the body of the request', 101505, 2, {}, 'in-a-row'],
  ['closed within the body of the request, in a group', 101505, 2, EACH, 'in-a-row'],
  ['reset within the body of the request, in a group', 101500, 2, EACH, 'in-a-row'],
  ['an unreadable response', 101506, 3, {}, 'in-a-row'],
  ['an unreadable response, in a group', 101506, 3, EACH, 'in-a-row'],
  ['an unreadable response on a reused connection', 101506, 3, { reused: true }, 'in-a-row'],
  ['an upgrade that is answered by closing', 101505, 3, { upgrade: 'websocket' }, 'in-a-row'],
  ['an upgrade that is answered by closing, in a group', 101505, 3, { ...EACH, upgrade: 'websocket' }, 'in-a-row'],
  ['no response in time', 101504, 3, {}, 'in-a-row'],
  ['no response in time on a reused connection', 101504, 3, { reused: true }, 'in-a-row'],
  ['closed without a response', 101505, 3, {}, 'in-a-row'],
  ['reset while sending', 101500, 1, {}, 'in-a-row'],
  // The documented defaults of an endpoint of a group that configures something.
  ['no response in time, in a group', 101504, 3, EACH, 'timeout'],
  ['closed without a response, in a group', 101505, 3, EACH, 'timeout'],
  ['reset while sending, in a group', 101500, 1, EACH, 'suspension'],
  // Retries before suspension, and lists of codes.
  ['no response in time, with retries', 101504, 3, { retries: 1 }, 'timeout'],
  ['reset while sending, with retries', 101500, 1, { retries: 1 }, 'in-a-row'],
  ['a list of suspending codes: another code', 101503, 0, { suspendCodes: [101508] }, 'ignored'],
  ['a list of suspending codes: an unreadable response', 101506, 3, { suspendCodes: [101508] }, 'ignored'],
  ['a list of suspending codes: the sum', 101504, 3, { timeoutCodes: [101599], suspendCodes: [101507] }, 'suspension'],
  ['a list of suspending codes: the base', 101504, 3, { timeoutCodes: [101599], suspendCodes: [101504] }, 'suspension'],
  ['a listed code of one exchange', 101506, 3, { suspendCodes: [101509] }, 'suspension'],
  ['a list of suspending codes leaves time-outs', 101504, 3, { ...EACH, suspendCodes: [101503] }, 'timeout'],
  ['a list of time-outs: the code as the client sees it', 101501, 3, { timeoutCodes: [101504] }, 'timeout'],
  ['a list of time-outs: the base', 101503, 0, { timeoutCodes: [101503] }, 'timeout'],
  ['a list of time-outs: other codes, in a group', 101504, 3, { ...EACH, timeoutCodes: [101503] }, 'suspension'],
  ['a list of time-outs: other codes', 101504, 3, { timeoutCodes: [101503] }, 'in-a-row'],
  ['both lists: time-outs first', 101503, 0, { timeoutCodes: [101503], suspendCodes: [101503] }, 'timeout'],
  ['-1 in both lists: nothing counts', 101503, 0, { timeoutCodes: [-1], suspendCodes: [-1] }, 'ignored'],
  ['-1 for time-outs, in a group: they suspend', 101504, 3, { ...EACH, timeoutCodes: [-1] }, 'suspension'],
]

for (const [what, base, state, circumstances, expected] of CASES) {
  test(`${what}: ${expected}`, () => {
    const { each = false, timeoutCodes = [], suspendCodes = [], retries = 0 } = circumstances
    const { reused = false, upgrade = '', kind = 'transport', sent = false } = circumstances
    const settings = { eachFailureCounts: each, retriesBeforeSuspension: retries, timeoutCodes, suspendCodes }
    const exchange = { reusesConnection: reused, upgrade, sentMs: sent ? 1 : 0 }
    assert.equal(classifyFailure({ base, state, kind }, settings, exchange), expected)
  })
}
