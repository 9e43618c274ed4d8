/**
 * What it costs to find the API and the resource of a request, by how many there are, in bytes that are new each time:
 * `npx node bench/micro/routing.ts`.
 */
import { type Api, EVERY_RESOURCE } from '../../src/exchange/api.ts'
import type { Resource } from '../../src/exchange/resource.ts'
import { ApiTable } from '../../src/route/api-table.ts'
import { ResourceTree } from '../../src/route/resource-tree.ts'
import { canonicalRoom, putCanonicalPath } from '../../src/structure/canonical-path.ts'
import { ScannedPath } from '../../src/structure/scanned-path.ts'
import { time } from './stopwatch.ts'

const TARGETS = 1024
const TARGET_BYTES = 16_384
const bytes = Buffer.alloc(TARGETS * 128 + TARGET_BYTES)
const path = new ScannedPath()

function apiAt(at: string): Api {
  const parts = { handlers: [], resources: EVERY_RESOURCE, production: null, sandbox: null, isAi: false }
  return { name: at, version: '1.0.0', path: at, keyType: 'PRODUCTION', ...parts }
}

/** Calls with the place of what `of` makes, one after the other. */
function turns(of: (index: number) => string, call: (from: number, end: number) => void): () => void {
  const ends: number[] = []
  for (let i = 0; i < TARGETS; i++) ends.push(i * 128 + bytes.latin1Write(of(i), i * 128))
  let next = 0
  return () => {
    const index = next++ & (TARGETS - 1)
    call(index * 128, ends[index]!)
  }
}

function found(table: ApiTable, authority = 'api.example:8290'): (from: number, end: number) => void {
  return (from, end) => {
    path.read(bytes, from, end)
    table.find(path, authority)
  }
}

const rest = (index: number) => `/customers/${index}/items?page=2`
const read = turns(
  index => `/orders/1.0.0${rest(index)}`,
  (from, end) => path.read(bytes, from, end),
)
time('path read, 35 characters', read)
for (const apis of [1, 100, 10_000]) {
  const table = new ApiTable()
  for (let i = 0; i < apis; i++) {
    for (const at of [`/orders${i}/1.0.0`, `/orders${i}`]) table.add({ path: at, api: apiAt(at), hosts: [] })
  }
  const target = (index: number) => `/orders${(index * 7919) % apis}/1.0.0${rest(index)}`
  time(`path read and its API found, of ${apis}`, turns(target, found(table)))
  time(
    `path read and no API found, of ${apis}`,
    turns(index => `/none${rest(index)}`, found(table)),
  )
}

const hosts = new ApiTable()
for (let i = 0; i < 10_000; i++) hosts.add({ path: '/orders', api: apiAt('/orders'), hosts: [`h${i}.example`] })
time(
  'path read and its API found, of 10,000 hosts',
  turns(index => `/orders${rest(index)}`, found(hosts, 'h77.example')),
)

function resource(template: string, verb: string): Resource {
  return { template, verb, authType: 'None', tier: 'Unlimited', scopes: [] }
}

function inTree(name: string, templates: readonly string[], of: (index: number) => string): void {
  const tree = new ResourceTree(templates.flatMap(template => [resource(template, 'GET'), resource(template, 'POST')]))
  const call = (from: number, end: number) => {
    path.read(bytes, from, end)
    tree.find(path, 2)!.resource('GET')
  }
  time(
    name,
    turns(index => `/api/1.0.0${of(index)}`, call),
  )
}

inTree('path read and its resource found, /* alone', ['/*'], index => `/things/${index}/items`)
for (const count of [1, 10, 1000]) {
  const templates = Array.from({ length: count }, (_, i) => `/things${i}/{id}/items`)
  const of = (index: number) => `/things${(index * 7919) % count}/${index}/items`
  inTree(`path read and its resource found, of ${count}`, templates, of)
}
inTree('path read and its resource found, {id}.{format}', ['/{id}.{format}', '/v{n}/{id}'], index => `/${index}.json`)
const deep = Array.from({ length: 6 }, (_, i) => `${'/a'.repeat(i)}/{x}${'/a'.repeat(5 - i)}/z`)
inTree('path read and its resource found, behind many dead ends', [...deep, '/*'], () => '/a/a/a/a/a/a/a')

const read2 = (from: number, end: number) => path.read(bytes, from, end)
time(
  'path with escapes read',
  turns(index => `/bench/caf%C3%A9/${index}/a%20b`, read2),
)
const out = Buffer.alloc(canonicalRoom(TARGET_BYTES))
time(
  'canonical form of a path that has another',
  turns(
    index => `/bench/./x/../%7Eada/${index}/items`,
    (from, end) => {
      putCanonicalPath(out, bytes, from, end)
    },
  ),
)
const long = Buffer.from(`/bench/${'%7e'.repeat(2700)}`)
time('canonical form of 8 KiB of escapes', () => {
  putCanonicalPath(out, long, 0, long.length)
})
