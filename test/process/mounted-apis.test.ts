/** Mounted APIs in the real program with two reactors: one database, reloads of a module, limits, and commands. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
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
  const limits = maxTps < 0 ? {} : { maxTps: { production: maxTps, productionTimeUnit: 'minute' } }
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
