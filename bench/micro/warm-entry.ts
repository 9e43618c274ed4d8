/**
 * What a request with a token that was seen before costs on top of one without: finding verdict, subscription, scopes
 * and counters of token and resource. `npx node bench/micro/warm-entry.ts`; with `parts`, `verdicts`, `pairs`,
 * `memory`, `flood`, `whole` only those. Figures are nanoseconds, medians of rounds in which alternatives take turns.
 */
import { execFileSync } from 'node:child_process'
import { byteParts, checkParts, counterParts, fieldParts, schemeParts } from './warm/parts.ts'
import { flood } from './warm/flood.ts'
import { memory } from './warm/kept-memory.ts'
import { pairs } from './warm/pairs.ts'
import { compare } from './warm/rounds.ts'
import { clearSlab, TokenStore } from './warm/token-memory.ts'
import {
  ByHash,
  ByHashInSlab,
  ByText,
  compareBuffer,
  type Connection,
  InSlab,
  Remembered,
  RememberedByHash,
  type Verdicts,
} from './warm/verdicts.ts'
import { whole } from './warm/whole.ts'

const LENGTHS = [600, 1500]

/** Which token comes on which connection, turn by turn. */
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
  { name: '1,000 tokens, another with each request', tokens: 1000, connections: 64, tokenOf: scattered },
]

function verdicts(length: number, traffic: Traffic): void {
  clearSlab()
  const tokens = new TokenStore(traffic.tokens, length)
  const connections = (): Connection[] => Array.from({ length: traffic.connections }, () => ({ entry: null }))
  const step = (name: string, found: Verdicts | null) => {
    const own = connections()
    return {
      name,
      run: (turn: number) => {
        tokens.arrive(traffic.tokenOf(turn))
        const connection = own[turn % traffic.connections]!
        if (found === null) return connection
        const entry = found.find(connection, length)
        if (entry === null) throw new Error(`${name} did not find its token`)
        return entry
      },
    }
  }
  compare(`Verdict, ${length} bytes, ${traffic.name}`, [
    step('the token arrives in the read buffer', null),
    step('b: lru-cache by text', new ByText(tokens)),
    step('b: the same with a ttl of its own', new ByText(tokens, { ttl: true })),
    step('d: table of sets by hash, slab, WebAssembly compares', new InSlab(tokens)),
    step('g: lru-cache by hash, words compared', new ByHash(tokens)),
    step('h: lru-cache by hash, slab, Buffer.compare', new ByHashInSlab(tokens, compareBuffer)),
    step('h: lru-cache by hash, slab, WebAssembly compares', new ByHashInSlab(tokens)),
    step('c+b: remembered by the connection, else by text', new Remembered(new ByText(tokens, { hasCopies: true }))),
    step('c+g: remembered by the connection, else lru-cache by hash', new Remembered(new ByHash(tokens))),
    step('c+h: remembered where the hash is the same, else h', new RememberedByHash(new ByHashInSlab(tokens))),
  ])
}

const SECTIONS: Readonly<Record<string, () => void>> = {
  parts() {
    fieldParts()
    schemeParts()
    LENGTHS.forEach(byteParts)
    checkParts()
    counterParts()
  },
  verdicts() {
    for (const length of LENGTHS) for (const traffic of TRAFFIC) verdicts(length, traffic)
  },
  pairs,
  memory: () => LENGTHS.forEach(memory),
  flood: () => LENGTHS.forEach(flood),
  whole: () => LENGTHS.forEach(whole),
}

const asked = process.argv.slice(2)
for (const [name, section] of Object.entries(SECTIONS)) {
  if (asked.includes(name)) section()
  // Each in a process of its own: what one has the compiler believe does not slow the next.
  else if (asked.length === 0) execFileSync(process.execPath, [import.meta.filename, name], { stdio: 'inherit' })
}
