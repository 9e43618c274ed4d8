/** Times routing by the number of APIs and resources, with 1,024 paths in turn: `npx node bench/micro/routing.ts`. */
import { type Api, EVERY_RESOURCE } from '../../src/proxy/exchange/api.ts'
import type { Resource } from '../../src/proxy/exchange/resource.ts'
import { ApiTable } from '../../src/route/api-table.ts'
import { ResourceTree } from '../../src/route/resource-tree.ts'
import { PathCanonicalizer } from '../../src/route/canonical-path.ts'
import { ScannedPath } from '../../src/route/scanned-path.ts'
import { time } from './timing.ts'

const TARGETS = 1024
const TARGET_BYTES = 16_384
const bytes = Buffer.alloc(TARGETS * 128 + TARGET_BYTES)
const path = new ScannedPath()

function apiAt(at: string): Api {
  const parts = {
    filters: [],
    isOpen: true,
    resources: EVERY_RESOURCE,
    production: null,
    sandbox: null,
    isAi: false,
    metricsRow: 0,
    mediation: null,
    fullName: 'a:v1',
    provider: '',
    hostName: 'h',
    escapedSlashes: 'refuse' as const,
  }
  return { name: at, version: '1.0.0', path: at, keyType: 'PRODUCTION', ...parts }
}

/** Calls with the offsets of the paths that `of` returns, in turn. */
function eachInTurn(pathOf: (index: number) => string, call: (from: number, end: number) => void): () => void {
  const ends: number[] = []
  for (let i = 0; i < TARGETS; i++) ends.push(i * 128 + bytes.latin1Write(pathOf(i), i * 128))
  let next = 0
  return () => {
    const index = next++ & (TARGETS - 1)
    call(index * 128, ends[index]!)
  }
}

function findApi(table: ApiTable, authority = 'api.example:8290'): (from: number, end: number) => void {
  return (from, end) => {
    path.read(bytes, from, end)
    table.find(path, authority)
  }
}

const rest = (index: number) => `/customers/${index}/items?page=2`
const readPath = eachInTurn(
  index => `/orders/1.0.0${rest(index)}`,
  (from, end) => path.read(bytes, from, end),
)
time('path read, 35 characters', readPath)
for (const apis of [1, 100, 10_000]) {
  const table = new ApiTable()
  for (let i = 0; i < apis; i++) {
    for (const at of [`/orders${i}/1.0.0`, `/orders${i}`]) table.add({ path: at, api: apiAt(at), hosts: [] })
  }
  const target = (index: number) => `/orders${(index * 7919) % apis}/1.0.0${rest(index)}`
  time(`path read and its API found, of ${apis}`, eachInTurn(target, findApi(table)))
  time(
    `path read and no API found, of ${apis}`,
    eachInTurn(index => `/none${rest(index)}`, findApi(table)),
  )
}

const hosts = new ApiTable()
for (let i = 0; i < 10_000; i++) hosts.add({ path: '/orders', api: apiAt('/orders'), hosts: [`h${i}.example`] })
time(
  'path read and its API found, of 10,000 hosts',
  eachInTurn(index => `/orders${rest(index)}`, findApi(hosts, 'h77.example')),
)

function resource(template: string, verb: string): Resource {
  return { template, verb, authType: 'None', tier: 'Unlimited', scopes: [] }
}

function timeResourceTree(name: string, templates: readonly string[], restOf: (index: number) => string): void {
  const tree = new ResourceTree(templates.flatMap(template => [resource(template, 'GET'), resource(template, 'POST')]))
  const call = (from: number, end: number) => {
    path.read(bytes, from, end)
    tree.find(path, 2)!.resource('GET')
  }
  time(
    name,
    eachInTurn(index => `/api/1.0.0${restOf(index)}`, call),
  )
}

timeResourceTree('path read and its resource found, only /*', ['/*'], index => `/things/${index}/items`)
for (const count of [1, 10, 1000]) {
  const templates = Array.from({ length: count }, (_, i) => `/things${i}/{id}/items`)
  const restOf = (index: number) => `/things${(index * 7919) % count}/${index}/items`
  timeResourceTree(`path read and its resource found, of ${count}`, templates, restOf)
}
timeResourceTree(
  'path read and its resource found, {id}.{format}',
  ['/{id}.{format}', '/v{n}/{id}'],
  index => `/${index}.json`,
)
const deep = Array.from({ length: 6 }, (_, i) => `${'/a'.repeat(i)}/{x}${'/a'.repeat(5 - i)}/z`)
timeResourceTree('path read and its resource found, many partial matches', [...deep, '/*'], () => '/a/a/a/a/a/a/a')

time(
  'path with escapes read',
  eachInTurn(
    index => `/bench/caf%C3%A9/${index}/a%20b`,
    (from, end) => path.read(bytes, from, end),
  ),
)
const canonicalizer = new PathCanonicalizer()
time(
  'canonical form of a path that is not canonical',
  eachInTurn(
    index => `/bench/./x/../%7Eada/${index}/items`,
    (from, end) => {
      canonicalizer.path(bytes, from, end)
    },
  ),
)
const long = Buffer.from(`/bench/${'%7e'.repeat(2700)}`)
time('canonical form of 8 KiB of escapes', () => {
  canonicalizer.path(long, 0, long.length)
})
