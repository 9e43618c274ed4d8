/**
 * Validation of tokens in a reactor: `npx node bench/micro/token-validation.ts`. Known tokens in nanoseconds of the
 * thread; new tokens in microseconds of the whole process, and of the calling thread.
 */
import type { TokenGrant } from '../../src/auth/grants.ts'
import { METRIC } from '../../src/observe/metrics.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { signedToken, tokenSigner, type TokenSigner } from '../../test/auth/token-maker.ts'
import { issuerPlan, TokenBench } from '../../test/auth/token-bench.ts'
import { MeasuredTable } from '../measured-table.ts'
import { median } from '../results.ts'
import { compare } from './timing.ts'

const ISSUER = 'https://issuer.example/oauth2/token'
const TOKENS = 1000
/** Stands for any API, and for any grant of it. */
const API = {}
const GRANT = { kind: 'grant', api: API } as TokenGrant
const ROUNDS = 7
const CONCURRENCY = 64
/** An odd offset, as after "Authorization: Bearer ". */
const TOKEN_OFFSET = arena.acquire(8192)!.offset + 417

function makeTokens(signer: TokenSigner, length: number): readonly string[] {
  const claims = { iss: ISSUER, sub: 'user@example.org', azp: 'client-4711', scope: 'read write', exp: 4_000_000_000 }
  const plain = signedToken(signer, { ...claims, jti: '0000', filler: '' }).length
  const filler = 'x'.repeat(Math.max(0, Math.floor(((length - plain) * 3) / 4)))
  return Array.from({ length: TOKENS }, (_, i) =>
    signedToken(signer, { ...claims, jti: String(i).padStart(4, '0'), filler }),
  )
}

function benchFor(signer: TokenSigner): TokenBench {
  const bench = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
  bench.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
  return bench
}

async function knownTokens(length: number): Promise<void> {
  const signer = tokenSigner('RS256', 'key-1')
  const texts = makeTokens(signer, length)
  const bench = benchFor(signer)
  for (const text of texts) await bench.validate(text)
  const forged = `${texts[0]!.slice(0, -8)}AAAAAAAA`
  await bench.validate(forged)
  const store = texts.concat(forged).map(text => {
    const { offset } = arena.acquire(text.length)!
    arena.bytes.latin1Write(text, offset)
    return offset
  })
  const size = texts[0]!.length
  const arrive = (token: number) => arena.bytes.copyWithin(TOKEN_OFFSET, store[token]!, store[token]! + size)
  const findGrant = (token: number) => {
    arrive(token)
    const { tokens } = bench
    const row = tokens.find(TOKEN_OFFSET, size, null, 0)
    const entry = row < 0 ? tokens.validateUnknown(TOKEN_OFFSET, size) : tokens.entryAt(row)
    if (entry instanceof Promise) throw new Error('the token is not in the cache')
    if (entry.grantFor(API) === undefined) entry.keepGrant(GRANT)
    return entry.grantFor(API)
  }
  compare(`A known token of ${size} bytes, up to the grant of its API`, [
    { name: 'the token arrives in the read buffer', run: turn => arrive(turn % TOKENS) },
    { name: 'the same token with each request', run: () => findGrant(0) },
    { name: '64 tokens in turn', run: turn => findGrant(turn & 63) },
    { name: '1,000 tokens in turn', run: turn => findGrant(((turn * 7919) >>> 0) % TOKENS) },
    { name: 'a refused token', run: () => findGrant(TOKENS) },
  ])
}

const NEW_TOKEN_COLUMNS = { 'CPU µs': 1, 'µs of the thread': 1, 'µs elapsed': 1, 'longest turn, ms': 1 }
const newTokenTable = new MeasuredTable(`A new token, ${CONCURRENCY} concurrent`, NEW_TOKEN_COLUMNS)

async function newTokens(algorithm: string): Promise<void> {
  const signer = tokenSigner(algorithm, 'key-1')
  const texts = makeTokens(signer, 0)
  const cpu: number[] = []
  const own: number[] = []
  const wall: number[] = []
  const stalls: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const bench = benchFor(signer)
    const before = { cpu: process.cpuUsage(), own: process.threadCpuUsage(), at: performance.now() }
    let longest = 0
    let last = before.at
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last)
      last = performance.now()
    }, 1)
    let next = 0
    const lane = async () => {
      while (next < TOKENS) await bench.validate(texts[next++]!)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, lane))
    clearInterval(timer)
    const all = process.cpuUsage(before.cpu)
    const mine = process.threadCpuUsage(before.own)
    cpu.push((all.user + all.system) / TOKENS)
    own.push((mine.user + mine.system) / TOKENS)
    wall.push(((performance.now() - before.at) * 1000) / TOKENS)
    stalls.push(longest)
    if (bench.count('tokenVerifications') !== TOKENS) throw new Error(`${METRIC.tokenVerifications}: not all verified`)
    bench.tokens.clear()
  }
  newTokenTable.row(algorithm, ...[cpu, own, wall, stalls].map(median))
}

for (const length of [600, 1500]) await knownTokens(length)
for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA']) await newTokens(algorithm)
