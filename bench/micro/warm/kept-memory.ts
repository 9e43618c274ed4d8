/** Bytes that an entry takes for as long as it is kept, the slab not counted: there it takes what its slot has. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type BenchResource, ByHash, ByHashInSlab, ByText, type Entry, type Pair, type Verdicts } from './verdicts.ts'
import { clearSlab, TokenStore } from './token-memory.ts'

const TOKENS = 8000
const PAIRS = 100_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heldBytes(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const held: unknown[] = []

function bytesOf(count: number, make: () => unknown): number {
  const before = heldBytes()
  held.push(make())
  const after = heldBytes()
  held.length = 0
  return Math.round((after - before) / count)
}

function pairsOf(entry: Entry | null): Map<BenchResource, Pair> {
  const pairs = new Map<BenchResource, Pair>()
  for (let index = 0; index < PAIRS; index++) {
    const resource = { api: held, key: '', index, scopeMask: 1 }
    pairs.set(resource, { resource, refusal: null, entry: entry! })
  }
  return pairs
}

export function memory(length: number): void {
  const tokens = new TokenStore(TOKENS, length)
  clearSlab()
  const ways: readonly (readonly [string, () => Verdicts])[] = [
    ['b: lru-cache by text', () => new ByText(tokens)],
    ['g: lru-cache by hash, a typed array each', () => new ByHash(tokens)],
    ['h: lru-cache by hash, without its slot of 2,048 bytes', () => new ByHashInSlab(tokens)],
  ]
  console.log(`\nBytes that an entry takes, ${length} bytes of token`)
  for (const [name, make] of ways) console.log(`  ${name.padEnd(70)}${String(bytesOf(TOKENS, make)).padStart(6)}`)
  const ofPair = bytesOf(PAIRS, () => pairsOf(null))
  console.log(`  ${'a pair of token and resource in a Map, and its resource'.padEnd(70)}${String(ofPair).padStart(6)}`)
}
