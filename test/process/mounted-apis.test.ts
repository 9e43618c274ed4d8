/** Mounted APIs in the real program with two reactors: one database, reloads of a module, limits, and commands. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { PoolsReport } from '../../src/primary/pool-service.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { openProject } from '../harness/open-project.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'

const clients: Peer[] = []
after(async () => {
  for (const client of clients) client.destroy()
  await leave()
})

const OPEN = { authType: 'None', throttlingPolicy: 'Unlimited' }
const at = home()
put(
  at,
  'apis/Notes/api.yaml',
  openProject({
    name: 'Notes',
    context: '/t/{tenant}',
    isUnversioned: true,
    endpointConfig: { endpoint_type: 'mounted', module: 'sluice:sample' },
    operations: [
      { ...OPEN, target: '/notes', verb: 'POST' },
      { ...OPEN, target: '/notes/{id}', verb: 'GET' },
    ],
  }),
)

const moduleOf = (word: string) => `export const open = () => ({ handle: () => ({ status: 200, body: '${word}' }) })`
function putWord(word: string, maxTps = -1): void {
  put(at, 'apis/Word/word.mjs', moduleOf(word))
  const limits = maxTps < 0 ? {} : { maxTps: { production: maxTps, productionTimeUnit: 'hour' } }
  const endpointConfig = { endpoint_type: 'mounted', module: 'word.mjs' }
  put(at, 'apis/Word/api.yaml', openProject({ name: 'Word', context: '/word', endpointConfig, ...limits }))
}
putWord('first')

const port = await freePort()
const gateway = await start(at, [
  'transport.passthru_http.reactors=2',
  `transport.passthru_http.listener.parameters.port=${port}`,
])

/** On a connection of its own: the system spreads connections over the reactors. */
async function ask(method: string, path: string, body = '') {
  const client = await connectPeer(gateway.port)
  clients.push(client)
  client.send(`${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  return takeResponse(client)
}

test('notes that one reactor has created are there for every reactor', async () => {
  for (let note = 0; note < 8; note++) {
    const created = await ask('POST', '/t/acme/notes', `{"text":"${note}"}`)
    assert.equal(created.status, 201, created.body)
    const path = created.fields.get('location')![0]!.replace('http://a', '')
    for (let reader = 0; reader < 4; reader++) {
      assert.equal((JSON.parse((await ask('GET', path)).body) as { text: string }).text, String(note))
    }
  }
})

test('a reload deploys a changed module, and keeps the old one where the new project has an error', async () => {
  assert.equal((await ask('GET', '/word')).body, 'first')
  putWord('second')
  await reload(gateway)
  for (let each = 0; each < 4; each++) assert.equal((await ask('GET', '/word')).body, 'second')
  const config = { endpoint_type: 'mounted', module: 'gone.mjs' }
  put(at, 'apis/Word/api.yaml', openProject({ name: 'Word', context: '/word', endpointConfig: config }))
  await reload(gateway)
  assert.equal((await ask('GET', '/word')).body, 'second')
  const { code, out, err } = await sluice(at, 'check')
  assert.notEqual(code, 0)
  assert.match(out + err, /endpointConfig\.module = "gone\.mjs": cannot be read \(ENOENT\)/)
})

test('the hard limit of a mounted API counts over both reactors', async () => {
  putWord('third', 2)
  await reload(gateway)
  const statuses: number[] = []
  for (let each = 0; each < 6; each++) statuses.push((await ask('GET', '/word')).status)
  assert.deepEqual(statuses, [200, 200, 503, 503, 503, 503])
})

test('api list, api show, walk and pools show what is mounted', async () => {
  const list = await sluice(at, 'api', 'list')
  assert.match(list.out, /Notes:1\.0\.0 .* \/t\/\{tenant\} .*sluice:sample/)
  const show = await sluice(at, 'api', 'show', 'Notes')
  assert.match(show.out, /\nmounted\nsluice:sample, on worker threads\n/)
  assert.doesNotMatch(show.out, /endpoints/)
  const walk = await sluice(at, 'walk', '/t/acme/notes/none')
  assert.match(walk.out, /mounted +.*sluice:sample/)
  assert.match(walk.out, /404/)
  const pools = JSON.parse((await sluice(at, 'pools', '--json')).out) as { history: readonly { tasks: number }[] }
  assert.ok(pools.history.some(({ tasks }) => tasks > 30))
})

test('D805: 40 slow clients of two reactors hold none of two permits, and other clients are served', async () => {
  const sizes = 'worker_pool_size_core = 2\nworker_pool_size_max = 2\nworker_pool_queue_length = 10\n'
  put(at, 'deployment.toml', `[transport.passthru_http]\n${sizes}`)
  put(at, 'apis/Echo/echo.mjs', 'export const open = () => ({ handle: ({ body }) => ({ status: 200, body }) })')
  const endpointConfig = { endpoint_type: 'mounted', module: 'echo.mjs' }
  const operations = [{ ...OPEN, target: '/*', verb: 'POST' }]
  put(at, 'apis/Echo/api.yaml', openProject({ name: 'Echo', context: '/echo', endpointConfig, operations }))
  assert.deepEqual((await reload(gateway)).errors, [])
  const slow: Peer[] = []
  for (let client = 0; client < 40; client++) {
    const peer = await connectPeer(gateway.port)
    clients.push(peer)
    slow.push(peer)
    peer.send('POST /echo/1.0.0/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx')
    await peer.untilText('\r\n1\r\nx')
  }
  let http: PoolsReport['pools'][number] | undefined
  do [http] = (await listedPools()).pools
  while (http!.suspended < slow.length)
  assert.deepEqual([http!.name, http!.running, http!.waiting, http!.suspended], ['http', 0, 0, 40])
  assert.ok(http!.highest <= 2, String(http!.highest))
  for (let other = 0; other < 8; other++) {
    const peer = await connectPeer(gateway.port)
    clients.push(peer)
    peer.send('POST /echo/1.0.0/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok')
    assert.equal((await takeResponse(peer)).status, 200)
  }
  for (const peer of slow) peer.send(Buffer.alloc(999_999, 'x'))
  for (const peer of slow) await peer.untilLength(1_000_000)
  assert.ok((await listedPools()).pools[0]!.highest <= 2)
})

async function listedPools(): Promise<PoolsReport> {
  const { code, out, err } = await sluice(at, 'pools', '--json')
  assert.equal(code, 0, err)
  return JSON.parse(out) as PoolsReport
}
