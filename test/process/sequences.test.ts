/** Fault sequences of a home: checked, used at a start, and reloaded on every reactor. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { begin, backend, dial, home, leave, sluice, start, startTwo } from '../harness/operator.ts'
import { openProject } from '../harness/open-project.ts'
import type { RunningGateway } from '../harness/program.ts'
import { takeResponse } from '../harness/responses.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

const FOLDER = 'synapse-configs/default/sequences'
const ENDPOINT = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
const NOT_FOUND =
  '{"fault":{"code":404,"type":"Status report","message":"Not Found","description":"The requested resource is not available"}}'

/** A sequence that gives every fault this body. */
function wording(name: string, words: string): string {
  return `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">
  <payloadFactory media-type="json"><format>{"words":"${words}"}</format></payloadFactory>
  <property name="HTTP_SC" expression="$axis2:HTTP_SC" scope="axis2"/>
  <respond/>
</sequence>`
}

/** Bodies of faults on so many new connections, which both reactors serve. */
async function bodies(gateway: RunningGateway, count = 12): Promise<ReadonlySet<string>> {
  const all = new Set<string>()
  for (let i = 0; i < count; i++) {
    const client = await dial(gateway)
    client.send('GET /none HTTP/1.1\r\nHost: a\r\n\r\n')
    all.add((await takeResponse(client)).body)
    client.destroy()
  }
  return all
}

test('an edited sequence applies on every reactor when the reload returns', async () => {
  const gateway = await startTwo()
  assert.deepEqual(await bodies(gateway), new Set([NOT_FOUND]))
  for (const words of ['first', 'second']) {
    put(gateway.home, `${FOLDER}/main.xml`, wording('main', words))
    const answer = await reload(gateway)
    assert.deepEqual(
      [answer.outcome, answer.sequences, answer.errors],
      ['applied', { changed: ['main'], kept: [] }, []],
    )
    assert.deepEqual(await bodies(gateway), new Set([`{"words":"${words}"}`]))
  }
  assert.deepEqual((await reload(gateway)).sequences, { changed: [], kept: [] })
  rmSync(join(gateway.home.path, 'synapse-configs'), { recursive: true })
  assert.deepEqual((await reload(gateway)).sequences.changed, ['main'])
  assert.deepEqual(await bodies(gateway), new Set([NOT_FOUND]))
})

const at = home()
let gateway: RunningGateway

test('a sequence of [apim.ai] that does not exist is an error with its line', async () => {
  put(at, 'deployment.toml', '[apim.ai]\ncustom_error_response_sequence = "mine"\n')
  const { code, out } = await sluice(at, 'check')
  assert.equal(code, 78)
  assert.match(out, /deployment\.toml:2: apim\.ai\.custom_error_response_sequence = "mine": there is no sequence/)
  const refused = begin(at, 'start')
  assert.equal((await refused.exited).code, 78)
  assert.match(
    refused.said.text,
    /deployment\.toml:2: apim\.ai\.custom_error_response_sequence = "mine": there is no sequence/,
  )
  put(at, `${FOLDER}/mine.xml`, wording('mine', 'of AI'))
  assert.equal((await sluice(at, 'check')).code, 0)
})

test('a start with a broken file logs an error and uses the default', async () => {
  put(at, `${FOLDER}/main.xml`, '<sequence')
  put(at, `${FOLDER}/fault.xml`, wording('fault', 'mine'))
  gateway = await start(at)
  assert.deepEqual(await bodies(gateway, 1), new Set([NOT_FOUND]))
  const said = gateway.program.events.filter(({ msg }) => /main\.xml:1/.test(String(msg)))
  assert.equal(said.length, 1)
})

test('a reload with a broken file keeps the active sequence and applies everything else', async () => {
  put(gateway.home, `${FOLDER}/main.xml`, wording('main', 'before'))
  await reload(gateway)
  put(gateway.home, `${FOLDER}/main.xml`, wording('main', 'after').replace('<respond/>', '<answer/>'))
  put(gateway.home, `${FOLDER}/fault.xml`, wording('fault', 'of faults'))
  const { code, out } = await sluice(gateway.home, 'reload')
  assert.equal(code, 1)
  assert.match(out, /^error +.*main\.xml:4: answer: is not a mediator/m)
  assert.match(out, /^changed +fault\.xml$/m)
  assert.match(out, /^kept +main\.xml: it has errors, the active sequence stays$/m)
  assert.match(out, /^applied\n$/m)
  assert.deepEqual(await bodies(gateway, 1), new Set(['{"words":"before"}']))
  const client = await dial(gateway)
  client.send('GET /t HTTP/1.1\r\nHost: a b\r\n\r\n')
  assert.equal((await takeResponse(client)).body, '{"words":"of faults"}')
  const { code: checked, out: said } = await sluice(gateway.home, 'check')
  assert.equal(checked, 78)
  assert.match(said, /^error +.*main\.xml:4: answer: is not a mediator/m)
  assert.match(said, /^not valid: 1 error,/m)
  put(gateway.home, `${FOLDER}/main.xml`, wording('main', 'after'))
  assert.equal((await sluice(gateway.home, 'reload')).code, 0)
  assert.deepEqual(await bodies(gateway, 1), new Set(['{"words":"after"}']))
})

test('[apim.ai] is live, and an unknown sequence refuses the reload', async () => {
  put(at, 'deployment.toml', '[apim.ai]\ncustom_error_response_sequence = "none"\n')
  assert.equal((await sluice(at, 'reload')).code, 78)
  put(at, 'deployment.toml', '[apim.ai]\ncustom_error_response_sequence = "_ai_error_response_"\n')
  const { outcome, keys, restart } = await reload(gateway)
  assert.deepEqual([outcome, keys.length, restart], ['applied', 1, []])
})

test('sequences in the layout of the reference platform are found', async () => {
  const at = home(backend.port)
  put(at, 'repository/deployment/server/synapse-configs/default/sequences/main.xml', wording('main', 'from there'))
  const gateway = await start(at)
  assert.deepEqual(await bodies(gateway, 1), new Set(['{"words":"from there"}']))
})

test('check and each start name the APIs whose Sequences/ run', async () => {
  const at = home()
  put(
    at,
    'apis/Mine/api.yaml',
    `type: api\nversion: v4.0.0\ndata:\n  name: Mine\n  context: /mine\n  version: 1.0.0\n  securityScheme: [none]
  endpointConfig:\n    endpoint_type: http\n    production_endpoints:\n      url: http://127.0.0.1:${backend.port}\n`,
  )
  put(at, 'apis/Mine/Sequences/in-sequence/mine.xml', wording('mine', 'of the project'))
  const named = 'API Mine 1.0.0: runs request mine'
  assert.match((await sluice(at, 'check')).out, new RegExp(`^flows +${named}$`, 'm'))
  const started = await start(at)
  assert.ok(started.program.events.some(({ msg }) => msg === named))
  const client = await dial(started)
  client.send('GET /mine/1.0.0/x HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).body, '{"words":"of the project"}')
  client.destroy()
})

test('check and each start name the extension sequences of the home, by their names and APIs', async () => {
  const at = home(backend.port, 'new')
  put(at, `${FOLDER}/global_ext.xml`, wording('WSO2AM--Ext--In', 'of every API'))
  put(at, `${FOLDER}/old.xml`, wording('Gone:v1--Out', 'of no API'))
  put(at, `repository/tenants/1/${FOLDER}/tenant.xml`, wording('WSO2AM--Ext--In', 'of a tenant'))
  put(at, 'apis/Mine/api.yaml', openProject({ name: 'Mine', context: '/mine', endpointConfig: ENDPOINT }))
  const { code, out } = await sluice(at, 'check')
  assert.equal(code, 0, out)
  assert.match(out, /^flows +.*global_ext\.xml: WSO2AM--Ext--In runs for every API, also for \/token and \/revoke$/m)
  assert.match(out, /^flows +.*old\.xml: Gone:v1--Out runs for no API$/m)
  assert.match(out, /^warning +.*repository\/tenants: sequences of the tenants 1 are not read/m)
  const started = await start(at)
  assert.ok(
    started.program.events.some(({ msg }) =>
      /WSO2AM--Ext--In runs for every API, also for \/token and \/revoke$/.test(String(msg)),
    ),
  )
  const client = await dial(started)
  client.send('GET /mine/1.0.0/x HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).body, '{"words":"of every API"}')
  client.destroy()
})
