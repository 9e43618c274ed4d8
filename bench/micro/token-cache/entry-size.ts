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
import { MeasuredTable } from '../../measured-table.ts'
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
  const table = new MeasuredTable(`Entry of a token of ${length} bytes`, { bytes: 0 })
  for (const [name, make] of caches) table.row(name, bytesPerEntry(TOKENS, make))
  const ofPair = bytesPerEntry(PAIRS, () => pairsOf(null))
  table.row('a pair of token and resource in a Map, with the resource', ofPair)
}
