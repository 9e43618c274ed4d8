/** Lookup of scopes and counters for a token and a resource, by the number of resources. */
import { LRUCache } from 'lru-cache'
import { compare } from '../timing.ts'
import { TokenStore } from './token-memory.ts'
import {
  type BenchResource,
  ByTokenAndResourceText,
  ByTokenText,
  type Connection,
  Entry,
  type Grant,
  type Pair,
} from './caches.ts'

const PAIRS_MAX = 64

function resources(count: number): BenchResource[] {
  const api = {}
  return Array.from({ length: count }, (_, index) => ({
    api,
    key: `/orders/1.0.0/things${index}/{id}/items:GET`,
    index,
    scopeMask: 1 << (index & 7),
  }))
}

function viaBoundedMap(entry: Entry, resource: BenchResource): Pair {
  const { last } = entry
  if (last !== null && last.resource === resource) return last
  const pair = entry.pairs.get(resource) ?? makePair(entry, resource)
  entry.last = pair
  return pair
}

/** Stands for the lookup of application and subscription, which costs more. */
function makePair(entry: Entry, resource: BenchResource): Pair {
  if (entry.pairs.size >= PAIRS_MAX) entry.pairs.clear()
  const pair = { resource, refusal: null, entry }
  entry.pairs.set(resource, pair)
  return pair
}

function viaMap(entry: Entry, resource: BenchResource): Pair {
  const known = entry.pairs.get(resource)
  if (known !== undefined) return known
  const pair = { resource, refusal: null, entry }
  entry.pairs.set(resource, pair)
  return pair
}

/** The grant of an entry for the API of a resource. A grant has a bit for each resource, so one grant serves all. */
function viaGrant(entry: Entry, resource: BenchResource): Grant | null {
  let { grant } = entry
  if (grant === null || grant.api !== resource.api) {
    grant = entry.grants.get(resource.api) ?? makeGrant(entry, resource.api)
    entry.grant = grant
  }
  return (grant.scopeMask & resource.scopeMask) === 0 ? null : grant
}

function makeGrant(entry: Entry, api: object): Grant {
  const grant = { api, scopeMask: -1, refusal: null }
  entry.grants.set(api, grant)
  return grant
}

export function grantLookups(): void {
  const tokens = new TokenStore(1000, 600)
  for (const [tokenCount, resourceCount] of [
    [1, 1],
    [1, 64],
    [1, 1000],
    [1000, 1],
    [1000, 16],
    [1000, 1000],
  ] as const) {
    const all = resources(resourceCount)
    const entries = () => Array.from({ length: tokenCount }, () => new Entry(tokens.at(0), 600))
    const resourceOf = (turn: number) => all[((turn * 31) >>> 0) % resourceCount]!
    const step = (name: string, run: (entry: Entry, resource: BenchResource) => unknown) => {
      const own = entries()
      return { name, run: (turn: number) => run(own[((turn * 7919) >>> 0) % tokenCount]!, resourceOf(turn)) }
    }
    const byPair = new LRUCache<string, Pair>({ max: 1_000_000 })
    compare(`Lookup of the grant: ${tokenCount} tokens, ${resourceCount} resources`, [
      step('entry and resource', entry => entry),
      step('Map by resource', viaMap),
      step('Map by resource, at most 64 per token, last pair first', viaBoundedMap),
      step('grant per API, mask of scopes', viaGrant),
      step('LRU by one text of token and resource', (entry, resource) => {
        const key = `${entry.length}:${resource.key}`
        const known = byPair.get(key)
        if (known !== undefined) return known
        byPair.set(key, { resource, refusal: null, entry })
        return entry
      }),
    ])
  }
  combinedTexts(tokens)
}

/** Compares a key that joins token and resource with a key of the token and a Map of resources. */
function combinedTexts(tokens: TokenStore): void {
  const all = resources(16)
  const byPair = new ByTokenAndResourceText(tokens, all)
  const byText = new ByTokenText(tokens)
  const connection: Connection = { entry: null }
  const step = (name: string, run: (resource: BenchResource) => unknown) => ({
    name,
    run: (turn: number) => {
      tokens.arrive(((turn * 7919) >>> 0) % 1000)
      return run(all[turn & 15]!)
    },
  })
  compare('Lookup of token and grant together: 1,000 tokens and 16 resources in turn', [
    step('the token arrives in the read buffer', () => 0),
    step('LRU by the text of token and resource', resource => byPair.find(600, resource)!.entry),
    step('LRU by text, then Map by resource', resource => viaMap(byText.find(connection, 600)!, resource)),
  ])
}
