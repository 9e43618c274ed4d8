/** `why`: the meanings of every transport code, written out by hand, and its output. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { why } from '../../src/cli/why.ts'
import { allKeys } from '../../src/config/catalogue.ts'
import { API_ADVICE, API_METRICS, TRANSPORT_ADVICE } from '../../src/faults/advice.ts'
import { FAULT, REPLACED_CODES } from '../../src/faults/error-codes.ts'
import { allocateMetrics, renderMetrics, snapshotMetrics } from '../../src/observe/metrics.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import { faultBody } from '../harness/responses.ts'

const READY = 'REQUEST_READY'
const HEAD = 'REQUEST_HEAD'
const BODY = 'REQUEST_BODY'
const DONE = 'REQUEST_DONE'
const RESPONSE_HEAD = 'RESPONSE_HEAD'
const RESPONSE_BODY = 'RESPONSE_BODY'

// Code -> [side, base, state, what the client gets] of each meaning; `-` for nothing.
const TABLE: Readonly<Record<number, readonly (readonly [string, number, string, string])[]>> = {
  101001: [['source', 101001, READY, '-']],
  101002: [['source', 101001, HEAD, '400']],
  101003: [['source', 101001, BODY, '400']],
  101004: [
    ['source', 101001, DONE, '-'],
    ['source', 101000, RESPONSE_HEAD, 'reset'],
  ],
  // 101001 here: a malformed body behind an early answer.
  101005: [
    ['source', 101001, RESPONSE_HEAD, 'reset'],
    ['source', 101000, RESPONSE_BODY, 'reset'],
  ],
  101006: [['source', 101001, RESPONSE_BODY, 'reset']],
  101007: [['source', 101000, 'CLOSING', 'reset']],
  101501: [['target', 101500, HEAD, '502']],
  101502: [['target', 101500, BODY, '502']],
  101503: [['target', 101503, READY, '502']],
  101504: [['target', 101501, DONE, '502']],
  101505: [
    ['target', 101504, HEAD, '504'],
    ['target', 101501, RESPONSE_HEAD, 'reset'],
  ],
  101506: [
    ['target', 101506, READY, '502'],
    ['target', 101505, HEAD, '502'],
    ['target', 101504, BODY, '504'],
    ['target', 101501, RESPONSE_BODY, 'reset'],
  ],
  101507: [
    ['target', 101507, READY, '-'],
    ['target', 101506, HEAD, '502'],
    ['target', 101505, BODY, '502'],
    ['target', 101504, DONE, '504'],
  ],
  101508: [
    ['target', 101508, READY, '504'],
    ['target', 101506, BODY, '502'],
    ['target', 101505, DONE, '502'],
    ['target', 101504, RESPONSE_HEAD, 'reset'],
  ],
  101509: [
    ['target', 101506, DONE, '502'],
    ['target', 101505, RESPONSE_HEAD, 'reset'],
    ['target', 101504, RESPONSE_BODY, 'reset'],
  ],
  101510: [
    ['target', 101510, '', '502'],
    ['target', 101509, HEAD, '-'],
    ['target', 101506, RESPONSE_HEAD, 'reset'],
    ['target', 101505, RESPONSE_BODY, 'reset'],
  ],
  101511: [
    ['target', 101509, BODY, '-'],
    ['target', 101506, RESPONSE_BODY, 'reset'],
  ],
  101512: [['target', 101509, DONE, '-']],
  101513: [['target', 101509, RESPONSE_HEAD, '-']],
  101514: [['target', 101509, RESPONSE_BODY, '-']],
  101600: [['target', 101600, '', '503']],
  101601: [['target', 101601, '', '503']],
  102511: [['source', 102511, '', '400']],
}

interface Explanation {
  readonly text: string
  readonly code: number
  readonly base: number
  readonly state: number | null
  readonly stateName: string
  readonly side: string
  readonly response: string
  readonly meaning: string
  readonly checks: readonly string[]
}

async function ask(...rest: string[]): Promise<{ exit: number; out: string; err: string }> {
  const out = new Transcript()
  const err = new Transcript()
  const exit = await why(argumentsFor('/nowhere', { rest }), out, err)
  return { exit, out: out.text, err: err.text }
}

async function all(): Promise<readonly Explanation[]> {
  const out = new Transcript()
  await why(argumentsFor('/nowhere', { json: true }), out)
  return JSON.parse(out.text)
}

function startOf(response: string): string {
  return response.startsWith('a reset') ? 'reset' : response.startsWith('nothing') ? '-' : response.slice(0, 3)
}

for (const [code, expected] of Object.entries(TABLE)) {
  test(`${code} has ${expected.length} meanings`, async () => {
    const out = new Transcript()
    assert.equal(await why(argumentsFor('/nowhere', { json: true, rest: [code] }), out), 0)
    const told: { code: number; meanings: readonly Explanation[] } = JSON.parse(out.text)
    assert.equal(told.code, Number(code))
    assert.deepEqual(
      told.meanings.map(it => [it.side, it.base, it.stateName, startOf(it.response)]),
      expected,
    )
    for (const { meaning, checks } of told.meanings) {
      assert.match(meaning, /\.$/)
      assert.doesNotMatch(meaning, /\{when\}| \.|undefined/)
      assert.ok(checks.length > 0)
    }
  })
}

test('the list has the transport codes of the table and every API code', async () => {
  const told = await all()
  const transport = new Set(told.filter(it => it.side !== '').map(it => it.code))
  assert.deepEqual([...transport].map(String), Object.keys(TABLE))
  const ofApis = Object.keys(FAULT).filter(code => !Object.hasOwn(TRANSPORT_ADVICE, code))
  assert.deepEqual(
    new Set(told.filter(it => it.side === '').map(it => String(it.code))),
    new Set([...ofApis, ...Object.keys(REPLACED_CODES)].sort((one, other) => Number(one) - Number(other))),
  )
  for (const code of ofApis) assert.ok(API_ADVICE[Number(code)] !== undefined, `${code}: nothing to check`)
})

test('the text of each code is the one that clients get', async () => {
  for (const { side, base, state, stateName, response, text } of await all()) {
    if (side === '' || text === '') continue
    const { message, description } = JSON.parse(faultBody(base, state ?? 0)).fault
    assert.equal(text, `${message}: ${description}`, `${base} ${stateName}: ${response}`)
  }
  const { out } = await ask('101504', '3')
  assert.match(out, /^ {2}client gets {2}504 Gateway Timeout\n {15}Send timeout: The backend did not answer in time$/m)
})

test('the keys and metrics of the advice exist', () => {
  const keys = new Set(allKeys().map(({ path }) => path))
  const metrics = renderMetrics(snapshotMetrics(allocateMetrics(1)))
  for (const advice of Object.values(TRANSPORT_ADVICE)) {
    for (const key of advice.keys) assert.ok(keys.has(key), key)
    for (const metric of advice.metrics) assert.ok(metrics.includes(`${metric} 0`), metric)
  }
  for (const metric of Object.values(API_METRICS).flat()) assert.ok(metrics.includes(`${metric} 0`), metric)
})

test('a code is printed in colours only on a terminal without NO_COLOR', async t => {
  const { exit, out } = await ask('101507')
  assert.equal(exit, 0)
  assert.match(out, /^101507 has 4 meanings\./)
  assert.match(out, /^101507 = 101504 \+ 3 {2}REQUEST_DONE, backend side$/m)
  assert.match(out, /^ {2}client gets {2}504 Gateway Timeout$/m)
  assert.match(out, /^ {2}keys {9}transport\.passthru_http\.http\.socket\.timeout$/m)
  const { NO_COLOR } = process.env
  t.after(() => {
    if (NO_COLOR !== undefined) process.env.NO_COLOR = NO_COLOR
  })
  for (const [wish, expected] of [
    ['', /\x1b\[1m/],
    ['1', /^[^\x1b]*$/],
  ] as const) {
    process.env.NO_COLOR = wish
    const terminal = new Transcript(true)
    await why(argumentsFor('/nowhere', { rest: ['101507'] }), terminal)
    assert.match(terminal.text, expected)
  }
})

test('with a state the code is a base code, as in the event log', async () => {
  for (const words of [['101504', '3'], ['101504+3'], ['101504', 'REQUEST_DONE'], ['101504+request_done']]) {
    const { exit, out } = await ask(...words)
    assert.equal(exit, 0)
    assert.match(out, /^101507 = 101504 \+ 3 {2}REQUEST_DONE, backend side\n/)
  }
  const { exit, err } = await ask('101503', '2')
  assert.equal(exit, 1)
  assert.equal(err, '101503 does not occur in state 2; it occurs in 0 REQUEST_READY\n')
  assert.equal((await ask('7', '3')).err, 'no failure has the base code 7; sluice why lists all\n')
})

test('a code without states is explained with any state, because logs and `walk` show one', async () => {
  for (const code of ['303001', '303000', '900906', '102511', '101510']) {
    for (const state of ['0', '3']) {
      const { exit, out } = await ask(code, state)
      assert.equal(exit, 0, `${code} ${state}`)
      assert.match(out, new RegExp(`^${code}(?:  client side|  backend side)?\\n`))
    }
  }
})

test('a code that is a base code too lists the codes with this base', async () => {
  assert.match((await ask('101509')).out, /As a base code 101509 leads to 101510 \(1 REQUEST_HEAD\), 101511 /)
  assert.doesNotMatch((await ask('101512')).out, /As a base code/)
})

test('an API code is explained', async () => {
  const { exit, out } = await ask('404')
  assert.equal(exit, 0)
  assert.match(
    out,
    /^404\n {2}Not Found: The requested resource is not available\.\n {2}client gets {2}404 Not Found\n/,
  )
})

test('codes of unavailable endpoints name the command that lists endpoints', async () => {
  for (const code of ['303000', '303001']) {
    const { out } = await ask(code)
    assert.match(out, /^ {2}check {8}sluice endpoints: /m)
    assert.match(out, new RegExp(`^ {2}metrics {6}sluice_endpoint_refusals_total\\{code="${code}"\\}$`, 'm'))
    assert.match(out, /^ {15}sluice_responses_total\{class="5xx",status="503"\}$/m)
  }
})

test('900908 has a second meaning for a WebSocket that a sequence refuses', async () => {
  const { out } = await ask('900908')
  assert.match(out, /Resource forbidden: The WebSocket connection is not allowed\./)
  assert.match(out, /dispatchSeq\.xml, outDispatchSeq\.xml/)
  assert.match(out, /src\/proxy\/websocket-mediation\.ts/)
})

test('an unknown code is refused with the nearest code, an invalid one with the usage', async () => {
  assert.deepEqual(await ask('101540'), {
    exit: 1,
    out: '',
    err: 'there is no code 101540; the nearest is 101514. sluice why lists all\n',
  })
  for (const words of [['x'], ['1', '2', '3'], ['101504', 'NO_STATE'], ['101504', '9']]) {
    const { exit, err } = await ask(...words)
    assert.equal(exit, 2)
    assert.match(err, /^Usage:\n {2}sluice why /)
  }
})

for (const [status, err] of [
  [414, '414 URI Too Long is an HTTP status, not a code; faults with it have the code 400: sluice why 400\n'],
  [503, /^503 Service Unavailable is .*; faults with it have the code \d+(?: or \d+)* or 303001(?: or \d+)*: sluice /],
  [418, /^there is no code 418; the nearest is 408\./],
  [302, '302 Found is an HTTP status, not a code, and no fault has it\n'],
] as const) {
  test(`${status} is told from a code`, async () => {
    const told = await ask(String(status))
    assert.equal(told.exit, 1)
    if (typeof err === 'string') assert.equal(told.err, err)
    else assert.match(told.err, err)
  })
}

test('each status of a refused request is a code or leads to a code', async () => {
  const root = resolve(import.meta.dirname, '../../src')
  const files = globSync(['http1/*.ts', 'proxy/source/*.ts'], { cwd: root })
  const text = files.map(file => readFileSync(resolve(root, file), 'utf8')).join('')
  const statuses = new Set([...text.matchAll(/\bbad\(\s*(\d+)/g)].map(match => Number(match[1])))
  assert.ok(statuses.size > 6)
  // 502: an unreadable response.
  for (const status of [...statuses].filter(status => status !== 502 && !Object.hasOwn(FAULT, status)))
    assert.match((await ask(String(status))).err, /have the code (?:400|102512)\b/, String(status))
})

test('without a code all codes are listed', async () => {
  const { exit, out } = await ask()
  assert.equal(exit, 0)
  assert.match(out, /^101505 {2}101504 \+ 1 {2}backend side {2}REQUEST_HEAD\n {8}101501 \+ 4 /m)
  assert.match(out, /^404 {17}Not Found: /m)
})
