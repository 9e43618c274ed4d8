/** Worker threads of the real program: started with the first message that needs one, listed, counted, replaced. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { ask, freePort, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'

const FOLDER = 'synapse-configs/default/sequences'
const REWRITE = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">
  <payloadFactory media-type="json">
    <format>{"id": $1}</format>
    <args><arg evaluator="json" expression="$.pet"/></args>
  </payloadFactory>
</sequence>`
const REQUESTS = 8

/** Answers with the body that it has got. */
const backend = await ScriptedBackend.listen(peer => void echo(peer))
const clients: Peer[] = []
after(async () => {
  for (const client of clients) client.destroy()
  backend.close()
  await leave()
})

async function echo(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    if (peer.text === '') return
    const length = Number(/content-length: (\d+)/i.exec(peer.text)?.[1] ?? 0)
    const end = peer.text.indexOf('\r\n\r\n') + 4 + length
    await peer.untilLength(end)
    const body = peer.take(end).slice(end - length)
    peer.send(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  }
}

async function post({ port }: RunningGateway, body: string): Promise<string> {
  const client = await connectPeer(port)
  clients.push(client)
  const fields = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  client.send(`POST /t/ HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`)
  return (await takeResponse(client)).body
}

interface Pools {
  readonly threads: number
  readonly pools: readonly { readonly name: string; readonly running: number; readonly core: number }[]
  readonly history: readonly { readonly name: string; readonly tasks: number }[]
}

async function pools(gateway: RunningGateway): Promise<Pools> {
  const { code, out, err } = await sluice(gateway.home, 'pools', '--json')
  assert.equal(code, 0, err)
  return JSON.parse(out)
}

const port = await freePort()
const gateway = await start(
  home(backend.port),
  [
    'transport.passthru_http.reactors=2',
    `transport.passthru_http.listener.parameters.port=${port}`,
    'transport.passthru_http.worker_pool_size_core=3',
  ],
  { SLUICE_TEST_HOOKS: '1' },
)

test('messages that only pass start no thread', async () => {
  for (let at = 0; at < REQUESTS; at++) assert.equal(await post(gateway, '{"pet":7}'), '{"pet":7}')
  const { threads, history } = await pools(gateway)
  assert.equal(threads, 0)
  assert.deepEqual(
    history.map(({ name, tasks }) => [name, tasks]),
    [
      ['mediation', 0],
      ['background', 0],
    ],
  )
})

test('after a reload with a sequence that reads bodies, workers run it', async () => {
  put(gateway.home, `${FOLDER}/WSO2AM--Ext--In.xml`, REWRITE)
  assert.deepEqual((await reload(gateway)).errors, [])
  for (let at = 0; at < REQUESTS; at++) assert.deepEqual(JSON.parse(await post(gateway, `{"pet":${at}}`)), { id: at })
  const { threads, history, pools: rows } = await pools(gateway)
  assert.ok(threads >= 1, String(threads))
  assert.equal(history[0]!.tasks, REQUESTS)
  assert.deepEqual(
    rows.map(({ name, running, core }) => [name, running, core]),
    [
      ['http', 0, 3],
      ['https', 0, 3],
      ['background', 0, 20],
    ],
  )
  const metrics = await ask(gateway.healthPort, 'GET', '/metrics')
  for (const line of ['sluice_worker_permits_limit{pool="http"} 3', 'sluice_worker_tasks_total{pool="mediation"} 8'])
    assert.ok(metrics.includes(`\n${line}\n`), line)
})

test('a reactor that dies takes its worker threads with it, and no permit', async () => {
  await ask(gateway.healthPort, 'POST', '/test/kill')
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  for (let at = 0; at < REQUESTS; at++) assert.deepEqual(JSON.parse(await post(gateway, `{"pet":${at}}`)), { id: at })
  assert.ok((await pools(gateway)).pools.every(({ running }) => running === 0))
})

test('pools prints tables for people, and takes no words', async () => {
  const { code, out } = await sluice(gateway.home, 'pools')
  assert.equal(code, 0)
  assert.match(out, /^pool +running +core +max/)
  assert.match(out, /\nhttp +0 +3 +3 /)
  assert.match(out, /\n\d worker threads?, 0 died, 0 diversions\n/)
  assert.match(out, /\nconnections +open +limit\nclients/)
  assert.equal((await sluice(gateway.home, 'pools', 'x')).code, 2)
})
