/** `[apim.cors]` and the CORS of projects, from the files to the response, over reloads. */
import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { sendRequest, corsFields, withVaryAccept } from '../harness/filter-chain.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'
import { openProject } from '../harness/open-project.ts'
import { dial, home, leave, start } from '../harness/operator.ts'
import type { Home } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

const A = 'https://a.example'
const ANY = ['access-control-allow-origin: *']
const VARY = 'vary: Origin'
const ALL_OF_A = ['access-control-allow-credentials: true', `access-control-allow-origin: ${A}`, VARY]

async function putApi(t: TestContext, at: Home, name: string, more: object): Promise<void> {
  const backend = await UnreliableBackend.start(name)
  t.after(() => backend.stop())
  const url = `http://127.0.0.1:${backend.port}`
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url } }
  put(at, `apis/${name}/api.yaml`, openProject({ name, context: `/${name}`, endpointConfig, ...more }))
}

test('a reload changes [apim.cors] and not the CORS that a project sets itself', async t => {
  const at = home()
  put(at, 'deployment.toml', '')
  await putApi(t, at, 'silent', {})
  await putApi(t, at, 'own', {
    corsConfiguration: { corsConfigurationEnabled: true, accessControlAllowOrigins: ['https://own.example'] },
  })
  const gateway = await start(at)
  const client = await dial(gateway)
  const said = async (path: string): Promise<readonly string[]> =>
    corsFields(await sendRequest(client, `GET ${path}`, `Origin: ${A}\r\n`))
  const everything = async (): Promise<unknown> => [await said('/silent/x'), await said('/own/x'), await said('/none')]
  assert.deepEqual(await everything(), [ANY, [VARY], withVaryAccept(404, ANY)])

  put(at, 'deployment.toml', `[apim.cors]\nallow_origins = ["${A}"]\nallow_credentials = true\n`)
  const { outcome, restart, failures } = await reload(gateway)
  assert.deepEqual([outcome, restart, failures], ['applied', [], []])
  assert.deepEqual(await everything(), [ALL_OF_A, [VARY], withVaryAccept(404, ALL_OF_A)])

  put(at, 'deployment.toml', '[apim.cors]\nallow_credentials = true\n')
  const refused = await reload(gateway)
  assert.equal(refused.outcome, 'refused')
  assert.match(refused.errors[0]!.expected, /allow_origins must name its origins where allow_credentials is true/)
  assert.deepEqual(await everything(), [ALL_OF_A, [VARY], withVaryAccept(404, ALL_OF_A)])

  put(at, 'deployment.toml', '[apim.cors]\nenable = false\n')
  assert.equal((await reload(gateway)).outcome, 'applied')
  assert.deepEqual(await everything(), [[], [VARY], withVaryAccept(404, [])])
})
