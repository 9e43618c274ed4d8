/** A key manager and a gateway-worker without a common database: the broker tells the worker who may call. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { KeyManagerClient } from '../harness/key-manager-client.ts'
import { messageBroker } from '../harness/message-broker.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, managed } from '../harness/operator.ts'
import { pollPause } from '../harness/peers.ts'
import { freePort, type Home, launch, type Program, type RunningGateway, startProgram } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

const broker = await messageBroker()
const skip = typeof broker === 'string' ? broker : false
const programs: Program[] = []
after(async () => {
  for (const program of programs) await program.kill()
  await leave()
  if (typeof broker !== 'string') await broker.remove()
})

const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
const PETS = openProject({
  ...{ name: 'Pets', context: '/pets', endpointConfig, securityScheme: ['oauth2'], policies: ['Unlimited'] },
})

function brokerSets(): readonly string[] {
  if (typeof broker === 'string') throw new Error(broker)
  return [
    `apim.throttling.throttle_decision_endpoints=["tcp://127.0.0.1:${broker.port}/${broker.vhost}"]`,
    `apim.throttling.jms.username=${broker.username}`,
    `apim.throttling.jms.password=${broker.password}`,
  ]
}

function withPets(deployment: string): Home {
  const at = home()
  put(at, 'apis/Pets/api.yaml', PETS)
  put(at, 'deployment.toml', deployment)
  return at
}

async function codeOf(gateway: RunningGateway, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`http://127.0.0.1:${gateway.port}/pets/1.0.0/`, { headers })
  const text = await answer.text()
  return text === 'ok' ? 0 : Number(JSON.parse(text).fault.code)
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pollPause()
}

test('applications, subscriptions and revocations of the key manager are in force on the worker', {
  skip,
}, async () => {
  const port = await freePort()
  const keys = withPets('[server]\nserver_role = "api-key-manager"\n')
  const manager = launch(keys, ['management.enable=true', `management.port=${port}`, ...brokerSets()])
  programs.push(manager)
  await manager.said.until(/^ready$/m)
  await manager.said.until(/^broker connected$/m)
  const client = new KeyManagerClient(keys, port)
  const run = async (words: string): Promise<Record<string, string>> => {
    return JSON.parse(await managed(keys, ...words.split(' '), '--json'))
  }
  await run('application create Shop')
  const { consumerKey, secret } = await run('key generate Shop')
  await run('subscription add Shop Pets:1.0.0')
  const authorization = `Basic ${Buffer.from(`${consumerKey}:${secret}`).toString('base64')}`
  const newToken = async (): Promise<string> =>
    (await client.post('/oauth2/token', authorization, 'grant_type=client_credentials')).access_token!
  const early = await newToken()
  await client.post('/oauth2/revoke', authorization, `token=${early}`)

  const work = withPets(
    `[server]\nserver_role = "gateway-worker"
[oauth]\noidc.id_token.issuer = "https://localhost:${port}/oauth2/token"\ntimestamp_skew = 1
[apim.key_manager]\nservice_url = "https://localhost:${port}/services/"\nusername = "admin"
password = "${client.password}"
[transport.passthru_https]\nsender.ssl_profile.file_path = "sender.xml"\n`,
  )
  put(work, 'repository/resources/security/key-manager.pem', client.certificate)
  const store = '<TrustStore><Location>key-manager.pem</Location><Type>PEM</Type><Password/></TrustStore>'
  const profile = `<profile><servers>localhost:${port}</servers>${store}</profile>`
  put(work, 'sender.xml', `<parameter name="customSSLProfiles">${profile}</parameter>`)
  const worker = await startProgram(work, brokerSets())
  programs.push(worker.program)
  const token = await newToken()
  // What happened before the start of the worker.
  assert.deepEqual([await codeOf(worker, token), await codeOf(worker, early)], [0, 900901])
  // What happens while it runs: each change is there without a poll of any database.
  await run('subscription block Shop Pets:1.0.0')
  await until(async () => (await codeOf(worker, token)) === 900907)
  await run('subscription unblock Shop Pets:1.0.0')
  await until(async () => (await codeOf(worker, token)) === 0)
  await client.post('/oauth2/revoke', authorization, `token=${token}`)
  await until(async () => (await codeOf(worker, token)) === 900901)
  assert.equal(await codeOf(worker, await newToken()), 0)
})
