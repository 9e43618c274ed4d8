/** Memory of a cache entry, without its slot of fixed size in the slab. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  type BenchResource,
  ByHashWithCopies,
  ByHashInSlab,
  ByTokenText,
  type Entry,
  type Pair,
  type TokenCache,
} from './caches.ts'
import { clearSlab, TokenStore } from './token-memory.ts'

const TOKENS = 8000
const PAIRS = 100_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function liveBytes(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const retained: unknown[] = []

function bytesPerEntry(count: number, make: () => unknown): number {
  const before = liveBytes()
  retained.push(make())
  const after = liveBytes()
  retained.length = 0
  return Math.round((after - before) / count)
}

function pairsOf(entry: Entry | null): Map<BenchResource, Pair> {
  const pairs = new Map<BenchResource, Pair>()
  for (let index = 0; index < PAIRS; index++) {
    const resource = { api: retained, key: '', index, scopeMask: 1 }
    pairs.set(resource, { resource, refusal: null, entry: entry! })
  }
  return pairs
}

export function entrySizes(length: number): void {
  const tokens = new TokenStore(TOKENS, length)
  clearSlab()
  const caches: readonly (readonly [string, () => TokenCache])[] = [
    ['LRU by text', () => new ByTokenText(tokens)],
    ['LRU by hash, a typed array per token', () => new ByHashWithCopies(tokens)],
    ['LRU by hash, slab, without the slot of 2,048 bytes', () => new ByHashInSlab(tokens)],
  ]
  console.log(`\nBytes per entry, tokens of ${length} bytes`)
  for (const [name, make] of caches)
    console.log(`  ${name.padEnd(70)}${String(bytesPerEntry(TOKENS, make)).padStart(6)}`)
  const ofPair = bytesPerEntry(PAIRS, () => pairsOf(null))
  console.log(`  ${'a pair of token and resource in a Map, with the resource'.padEnd(70)}${String(ofPair).padStart(6)}`)
}
