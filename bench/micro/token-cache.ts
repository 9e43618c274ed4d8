/**
 * Compares designs of a token cache, of which `src/auth/token-table.ts` is one: `npx node bench/micro/token-cache.ts
 * [steps] [lookups] [grants] [memory] [flood] [decision]`, by default all sections. A known token is looked up, its
 * result checked, grant and scopes are found, and throttle counters are counted.
 */
import { execFileSync } from 'node:child_process'
import { byteSteps, checkSteps, counterSteps, fieldSteps, schemeSteps } from './token-cache/steps.ts'
import { flood } from './token-cache/flood.ts'
import { entrySizes } from './token-cache/entry-size.ts'
import { grantLookups } from './token-cache/grants.ts'
import { compare } from './timing.ts'
import { clearSlab, TokenStore } from './token-cache/token-memory.ts'
import {
  ByHashWithCopies,
  ByHashInSlab,
  ByTokenText,
  compareWithBuffer,
  type Connection,
  SetAssociative,
  PerConnection,
  PerConnectionByHash,
  type TokenCache,
} from './token-cache/caches.ts'
import { decision } from './token-cache/decision.ts'

const LENGTHS = [600, 1500]

/** The distribution of tokens over connections. */
interface Traffic {
  readonly name: string
  readonly tokens: number
  readonly connections: number
  readonly tokenOf: (turn: number) => number
}

const scattered = (turn: number) => ((turn * 7919) >>> 0) % 1000
const TRAFFIC: readonly Traffic[] = [
  { name: 'one token, 64 connections', tokens: 1, connections: 64, tokenOf: () => 0 },
  { name: '64 connections, each with a token of its own', tokens: 1000, connections: 64, tokenOf: turn => turn & 63 },
  {
    name: '1,000 connections, each with a token of its own',
    tokens: 1000,
    connections: 1000,
    tokenOf: turn => turn % 1000,
  },
  { name: '1,000 tokens in turn on 64 connections', tokens: 1000, connections: 64, tokenOf: scattered },
]

function lookups(length: number, traffic: Traffic): void {
  clearSlab()
  const tokens = new TokenStore(traffic.tokens, length)
  const connections = (): Connection[] => Array.from({ length: traffic.connections }, () => ({ entry: null }))
  const step = (name: string, cache: TokenCache | null) => {
    const own = connections()
    return {
      name,
      run: (turn: number) => {
        tokens.arrive(traffic.tokenOf(turn))
        const connection = own[turn % traffic.connections]!
        if (cache === null) return connection
        const entry = cache.find(connection, length)
        if (entry === null) throw new Error(`${name}: the token is not in the cache`)
        return entry
      },
    }
  }
  compare(`Lookup, ${length} bytes, ${traffic.name}`, [
    step('the token arrives in the read buffer', null),
    step('LRU by text', new ByTokenText(tokens)),
    step('LRU by text, with the ttl of lru-cache', new ByTokenText(tokens, { ttl: true })),
    step('set-associative table by hash, slab, WebAssembly', new SetAssociative(tokens)),
    step('LRU by hash, a typed array per token', new ByHashWithCopies(tokens)),
    step('LRU by hash, slab, Buffer.compare', new ByHashInSlab(tokens, compareWithBuffer)),
    step('LRU by hash, slab, WebAssembly', new ByHashInSlab(tokens)),
    step('per connection, else LRU by text', new PerConnection(new ByTokenText(tokens, { hasCopies: true }))),
    step('per connection, else LRU by hash, a typed array per token', new PerConnection(new ByHashWithCopies(tokens))),
    step(
      'per connection by hash, else LRU by hash, slab, WebAssembly',
      new PerConnectionByHash(new ByHashInSlab(tokens)),
    ),
  ])
}

const SECTIONS: Readonly<Record<string, () => void>> = {
  steps() {
    fieldSteps()
    schemeSteps()
    LENGTHS.forEach(byteSteps)
    checkSteps()
    counterSteps()
  },
  lookups() {
    for (const length of LENGTHS) for (const traffic of TRAFFIC) lookups(length, traffic)
  },
  grants: grantLookups,
  memory: () => LENGTHS.forEach(entrySizes),
  flood: () => LENGTHS.forEach(flood),
  decision: () => LENGTHS.forEach(decision),
}

const chosen = process.argv.slice(2)
for (const [name, section] of Object.entries(SECTIONS)) {
  if (chosen.includes(name)) section()
  // In processes of their own, so that the type feedback of one section does not slow the next one.
  else if (chosen.length === 0) execFileSync(process.execPath, [import.meta.filename, name], { stdio: 'inherit' })
}
