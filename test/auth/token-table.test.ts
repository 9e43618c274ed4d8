/** The table of validated tokens: what it finds, what it drops, and whose grants it gives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenGrant } from '../../src/auth/grants.ts'
import type { AcceptedToken, TokenResult } from '../../src/auth/token-result.ts'
import { hashOf, TokenEntry, TokenTable } from '../../src/auth/token-table.ts'
import { arena } from '../../src/http1/llhttp.ts'

const BYTES_MAX = 1 << 24
const LIFETIME = { cachedUntilMs: 1000, skewMs: 5, version: 1 }
const { offset: ARRIVED } = arena.acquire(8192)!

function entryOf(text: string, more: Partial<AcceptedToken> = {}): TokenEntry {
  const result = { kind: 'accepted', notBeforeMs: 0, expiresMs: 0, apiKey: null, confirmation: '', ...more }
  return new TokenEntry({ result: result as TokenResult, key: null }, text.length)
}

function find(table: TokenTable, text: string): TokenEntry | null {
  arena.bytes.latin1Write(text, ARRIVED)
  const row = table.find(hashOf(ARRIVED, text.length), ARRIVED, text.length)
  if (row < 0) return null
  table.use(row)
  return table.entryAt(row)
}

function add(table: TokenTable, text: string, entry = entryOf(text)): TokenEntry {
  table.add(text, entry, LIFETIME)
  return entry
}

/** Numbers that repeat with each run (Park and Miller). */
function randomNumbers(seed: number): (below: number) => number {
  let last = seed
  return below => {
    last = (last * 48_271) % 0x7fffffff
    return last % below
  }
}

for (const seed of [1, 2, 3]) {
  test(`10,000 random steps find what was added last, and never another token (seed ${seed})`, () => {
    const random = randomNumbers(seed)
    const lent = arena.acquiredChunks
    const table = new TokenTable(300, BYTES_MAX)
    const added = new Map<string, TokenEntry>()
    for (let step = 0; step < 10_000; step++) {
      const text = `token-${String(random(600)).padStart(40, '0')}`
      const found = find(table, text)
      assert.ok(found === null || found === added.get(text), `step ${step}`)
      if (found !== null && random(4) === 0) {
        table.remove(found)
        assert.equal(find(table, text), null)
      } else if (found === null) {
        added.set(text, add(table, text))
        assert.equal(find(table, text), added.get(text))
      }
      assert.ok(arena.acquiredChunks - lent <= 300)
    }
    assert.equal(arena.acquiredChunks - lent, 300)
    table.clear()
    assert.equal(arena.acquiredChunks, lent)
    for (const text of added.keys()) assert.equal(find(table, text), null)
  })
}

test('a table without room drops what was not used, and keeps what was', () => {
  const table = new TokenTable(100, BYTES_MAX)
  const warm = add(table, 'the token that every other request carries')
  for (let i = 0; i < 1000; i++) {
    add(table, `a token that comes once, and never again ${i}`)
    assert.equal(find(table, 'the token that every other request carries'), warm)
  }
  table.clear()
})

test('a table holds no more bytes of the arena than it may', () => {
  const lent = arena.acquiredChunks
  const table = new TokenTable(100, 5 * 2048)
  for (let i = 0; i < 50; i++) {
    add(table, `token ${i}`)
    assert.ok(arena.acquiredChunks - lent <= 5)
  }
  table.clear()
})

/** Ways in which an entry leaves the table, each with the entry of a table of one token. */
const DEPARTURES: readonly (readonly [name: string, leave: (table: TokenTable, entry: TokenEntry) => void])[] = [
  ['is removed', (table, entry) => table.remove(entry)],
  ['makes room for another token', table => void add(table, 'x')],
  ['is replaced by a token with the same end', table => void add(table, `X${CREDENTIAL.slice(1)}`)],
  ['is cleared with its table', table => table.clear()],
]
const CREDENTIAL = `a credential that ${'nobody may read '.repeat(4)}`

for (const [name, leave] of DEPARTURES) {
  test(`the bytes of a token that ${name} are zero`, () => {
    const table = new TokenTable(1, BYTES_MAX)
    const entry = add(table, CREDENTIAL)
    const bytes = entry.chunk!.view.subarray(0, CREDENTIAL.length)
    assert.equal(Buffer.from(bytes).toString('latin1'), CREDENTIAL)
    leave(table, entry)
    assert.equal(entry.row, -1)
    assert.ok(bytes.every(byte => byte === 0))
    table.clear()
  })
}

test('of tokens that end in the same bytes the last one stays: no client can make searches long', () => {
  const lent = arena.acquiredChunks
  const table = new TokenTable(100, BYTES_MAX)
  const texts = Array.from({ length: 50 }, (_, i) => `${String(i).padStart(4, '0')}${'same'.repeat(20)}`)
  const entries = texts.map(text => add(table, text))
  assert.deepEqual(
    texts.map(text => find(table, text)),
    entries.map((entry, i) => (i === 49 ? entry : null)),
  )
  assert.equal(arena.acquiredChunks - lent, 1)
  table.clear()
})

test('a row tells the grant of a bearer token for the API that was asked for last, and for no other', () => {
  const table = new TokenTable(100, BYTES_MAX)
  const [one, other] = [{}, {}]
  const grantOf = (api: object) => ({ kind: 'grant', api }) as TokenGrant
  const bearer = add(table, 'a bearer token')
  assert.equal(table.grantAt(bearer.row, one), null)
  const grant = grantOf(one)
  table.putGrant(bearer, grant)
  assert.deepEqual([table.grantAt(bearer.row, one), table.grantAt(bearer.row, other)], [grant, null])
  table.putGrant(bearer, grantOf(other))
  assert.equal(table.grantAt(bearer.row, one), null)
  table.moveTo(bearer.row, 2)
  assert.deepEqual([table.grantAt(bearer.row, other), table.versionAt(bearer.row)], [null, 2])
  const { row } = bearer
  table.putGrant(bearer, grant)
  table.remove(bearer)
  const next = add(table, 'the token in its place')
  assert.deepEqual([next.row, table.grantAt(row, one)], [row, null])
  table.putGrant(bearer, grant)
  assert.equal(table.grantAt(row, one), null)
  table.clear()
})

for (const [name, claims] of [
  ['an API key', { apiKey: { applicationId: '', keyType: 'PRODUCTION', permittedIps: [], permittedReferers: [] } }],
  ['a token that is bound to a certificate', { confirmation: 'thumbprint' }],
] as const) {
  test(`${name} has no grant in its row: its condition is checked with every request`, () => {
    const table = new TokenTable(100, BYTES_MAX)
    const api = {}
    const entry = add(table, 'a token', entryOf('a token', claims))
    table.putGrant(entry, { kind: 'grant', api } as TokenGrant)
    assert.equal(table.grantAt(entry.row, api), null)
    table.clear()
  })
}

test('times of a row: the skew extends both ends, and 0 is no end', () => {
  const table = new TokenTable(100, BYTES_MAX)
  const { row } = add(table, 'limited', entryOf('limited', { notBeforeMs: 100, expiresMs: 200 }))
  const { row: endless } = add(table, 'endless')
  assert.deepEqual(
    [94, 95].map(ms => table.hasBegun(row, ms)),
    [false, true],
  )
  assert.deepEqual(
    [204, 205].map(ms => table.hasEnded(row, ms)),
    [false, true],
  )
  assert.deepEqual([table.hasBegun(endless, 0), table.hasEnded(endless, Number.MAX_VALUE)], [true, false])
  assert.deepEqual(
    [999, 1000].map(ms => table.isKept(row, ms)),
    [true, false],
  )
  table.clear()
})
