/**
 * What verdicts of tokens cost in a reactor: `npx node bench/micro/tokens.ts`. Warm ones in nanoseconds of the thread,
 * new ones in microseconds of the whole process and, of it, of the thread that asks.
 */
import { METRIC } from '../../src/observe/metrics.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { signedToken, tokenSigner, type TokenSigner } from '../../test/identity/token-maker.ts'
import { issuerPlan, TokenBench } from '../../test/identity/told-sources.ts'
import { median } from '../results.ts'
import { compare } from './warm/rounds.ts'

const ISSUER = 'https://issuer.example/oauth2/token'
const TOKENS = 1000
const ROUNDS = 7
const IN_FLIGHT = 64
/** At an odd address, as behind "Authorization: Bearer ". */
const AT = arena.lend(8192)!.offset + 417

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
  bench.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
  return bench
}

async function warm(length: number): Promise<void> {
  const signer = tokenSigner('RS256', 'key-1')
  const texts = makeTokens(signer, length)
  const bench = benchFor(signer)
  for (const text of texts) await bench.check(text)
  const forged = `${texts[0]!.slice(0, -8)}AAAAAAAA`
  await bench.check(forged)
  const store = texts.concat(forged).map(text => {
    const { offset } = arena.lend(text.length)!
    arena.bytes.latin1Write(text, offset)
    return offset
  })
  const size = texts[0]!.length
  const arrive = (token: number) => arena.bytes.copyWithin(AT, store[token]!, store[token]! + size)
  const api = {}
  const found = (token: number) => {
    arrive(token)
    const entry = bench.tokens.check(AT, size)
    if (entry instanceof Promise) throw new Error('a known token was not found')
    if (entry.grantFor(api) === undefined) entry.keepGrant(api, 'grant')
    return entry.grantFor(api)
  }
  compare(`A known token of ${size} bytes, to the grant of its API`, [
    { name: 'the token arrives in the read buffer', run: turn => arrive(turn % TOKENS) },
    { name: 'the same one with each request', run: () => found(0) },
    { name: 'one of 64', run: turn => found(turn & 63) },
    { name: 'another of 1,000 with each request', run: turn => found(((turn * 7919) >>> 0) % TOKENS) },
    { name: 'one that was refused', run: () => found(TOKENS) },
  ])
}

async function cold(algorithm: string): Promise<void> {
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
      while (next < TOKENS) await bench.check(texts[next++]!)
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
    clearInterval(timer)
    const all = process.cpuUsage(before.cpu)
    const mine = process.threadCpuUsage(before.own)
    cpu.push((all.user + all.system) / TOKENS)
    own.push((mine.user + mine.system) / TOKENS)
    wall.push(((performance.now() - before.at) * 1000) / TOKENS)
    stalls.push(longest)
    if (bench.count('tokenVerifications') !== TOKENS) throw new Error(`${METRIC.tokenVerifications}: not all verified`)
    bench.tokens.forget()
  }
  const [all, mine, took, stall] = [cpu, own, wall, stalls].map(values => median(values).toFixed(1).padStart(8))
  console.log(`  ${algorithm.padEnd(8)}${all} us${mine} us on the thread${took} us each, longest turn${stall} ms`)
}

for (const length of [600, 1500]) await warm(length)
console.log(`\nA new token, ${IN_FLIGHT} brought at once`)
for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA']) await cold(algorithm)
