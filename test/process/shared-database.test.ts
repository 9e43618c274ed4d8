/** Item 4: real nodes on one PostgreSQL or MariaDB, which accept each other's tokens or refuse to start. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { sendCommand } from '../../src/cli/control-client.ts'
import { ENCRYPTION_KEY, type RealDatabase, realDatabase } from '../control/registry/real-databases.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { type Home, launch, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
const PETS = openProject({ name: 'Pets', context: '/pets', endpointConfig, securityScheme: ['oauth2'] })
const ISSUER = '[oauth]\noidc.id_token.issuer = "https://gateway.example/oauth2/token"\nsigning_key.lifetime = "1h"\n'

/** Two nodes; a clause may restart one. */
interface Pair {
  readonly database: RealDatabase
  one: RunningGateway
  other: RunningGateway
}

const CLAUSES: readonly (readonly [string, (pair: Pair) => Promise<void>])[] = [
  ['tokens of each node are accepted by the other', tokensOfBoth],
  ['a key that is due is replaced for all nodes, and no token is refused meanwhile', rotation],
  ['a node with another encryption.key says so with the remedy, and does not become ready', wrongKey],
  ['a node with another issuer says so with the remedy, and does not become ready', wrongIssuer],
  ['a node that names no issuer takes that of the database, and a reload keeps it', noIssuer],
  ['a node without encryption.key is refused before it connects', noKey],
  ['a reload leaves the issuer to a restart, so that the node goes on', reloadedIssuer],
]

after(leave)

for (const kind of ['postgre', 'mysql'] as const) {
  describe(`two nodes on one ${kind}`, () => {
    let pair: Pair | string = ''
    before(async () => {
      const database = await realDatabase(kind)
      pair = typeof database === 'string' ? database : await startPair(database)
    })
    after(async () => {
      if (typeof pair === 'string') return
      for (const { program } of [pair.one, pair.other]) await program.kill()
      await pair.database.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof pair === 'string') t.skip(pair)
        else await body(pair)
      })
    }
  })
}

async function startPair(database: RealDatabase): Promise<Pair> {
  const [one, other] = await Promise.all([start(nodeHome(database.toml)), start(nodeHome(database.toml))])
  for (const request of [
    { action: 'application create', name: 'shop' },
    { action: 'key generate', application: 'shop' },
    { action: 'subscription add', application: 'shop', api: 'Pets:1.0.0' },
  ]) {
    await sendCommand(one.home.data, { command: 'manage', request })
  }
  return { database, one, other }
}

function nodeHome(toml: string): Home {
  const at = home(backend.port, 'new')
  put(at, 'apis/Pets/api.yaml', PETS)
  put(at, 'deployment.toml', `${ISSUER}${toml}`)
  return at
}

async function tokenOf({ home: { data } }: RunningGateway): Promise<string> {
  const request = { action: 'token', application: 'shop' }
  return (await sendCommand<{ accessToken: string }>(data, { command: 'manage', request })).accessToken
}

async function codeOf({ port }: RunningGateway, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`http://127.0.0.1:${port}/pets/1.0.0/`, { headers })
  const text = await answer.text()
  return text === 'ok' ? 0 : Number(JSON.parse(text).fault.code)
}

/** Accepted once the node has read the list of changes. */
async function untilAccepted(gateway: RunningGateway, token: string): Promise<void> {
  while ((await codeOf(gateway, token)) !== 0) await sleep(50)
}

async function again({ program, home: at }: RunningGateway): Promise<RunningGateway> {
  program.signal('SIGTERM')
  await program.exited
  return start(at)
}

function kidOf(token: string): string {
  return decodeProtectedHeader(token).kid!
}

async function tokensOfBoth({ one, other }: Pair): Promise<void> {
  await untilAccepted(other, await tokenOf(one))
  await untilAccepted(one, await tokenOf(other))
}

async function rotation(pair: Pair): Promise<void> {
  const { database, other } = pair
  const before = await tokenOf(other)
  await database.run('update sluice_signing_keys set created_ms = created_ms - 7200000')
  pair.one = await again(pair.one)
  // Whichever node is first.
  const hasRotated = ({ program }: RunningGateway): boolean =>
    program.events.some(({ msg }) => msg === 'signing key rotated')
  while (![pair.one, other].some(hasRotated)) await sleep(50)
  // The next key is published, and does not sign yet.
  const between = await tokenOf(pair.one)
  assert.equal(kidOf(between), kidOf(before))
  assert.equal(await codeOf(other, between), 0)
  // As if ten minutes had passed for the first node.
  await database.run('update sluice_signing_keys set signs_from_ms = signs_from_ms - 600000')
  pair.one = await again(pair.one)
  const fresh = await tokenOf(pair.one)
  assert.notEqual(kidOf(fresh), kidOf(before))
  for (const node of [pair.one, other]) for (const token of [before, between, fresh]) await untilAccepted(node, token)
}

async function wrongKey(pair: Pair): Promise<void> {
  const toml = pair.database.toml.replace(ENCRYPTION_KEY, `${ENCRYPTION_KEY}, and wrong`)
  const expected =
    /^encryption\.key is not the key that encrypts the signing keys in .*: use the key of the other nodes/m
  await refused(pair, `${ISSUER}${toml}`, 1, expected)
}

async function wrongIssuer(pair: Pair): Promise<void> {
  const toml = `${ISSUER}${pair.database.toml}`.replace('gateway.example', 'other.example')
  const expected =
    /issuer is https:\/\/other\.example\S* here and https:\/\/gateway\.example\S* on another node.*: set one issuer/
  await refused(pair, toml, 1, expected)
}

async function noIssuer({ database, one, other }: Pair): Promise<void> {
  const at = nodeHome('')
  const own = (more: string): void => put(at, 'deployment.toml', `[server]\nhostname = "third.example"\n${more}`)
  own(database.toml)
  const third = await start(at)
  const [taken] = third.program.events.filter(({ msg }) => msg === 'issuer taken from the database')
  assert.match(JSON.stringify(taken), /"ISSUER":"https:\/\/gateway\.example\S*".*default is https:\/\/third\.example/)
  const tokens = async (): Promise<void> => {
    for (const [issuing, accepting] of [
      [third, one],
      [other, third],
    ] as const) {
      const token = await tokenOf(issuing)
      assert.equal(decodeJwt(token).iss, 'https://gateway.example/oauth2/token')
      await untilAccepted(accepting, token)
    }
  }
  await tokens()
  own(`${database.toml}\n[logging]\nlevel = "debug"`)
  const report = await sendCommand<{ readonly restart: readonly object[] }>(at.data, { command: 'reload' })
  assert.deepEqual(report.restart, [])
  await tokens()
  await third.program.kill()
}

async function noKey(pair: Pair): Promise<void> {
  const toml = pair.database.toml.replace(/^\[encryption\]\nkey.*\n/, '')
  await refused(pair, toml, 78, /encryption\.key: must be set where database\.apim_db is a server/)
}

async function refused({ one, other }: Pair, toml: string, code: number, expected: RegExp): Promise<void> {
  const at = nodeHome('')
  put(at, 'deployment.toml', toml)
  const program = launch(at, [])
  assert.deepEqual(await program.exited, { code, signal: null })
  assert.match(program.said.text, expected)
  assert.doesNotMatch(program.said.text, /^ready$/m)
  assert.equal(await codeOf(one, await tokenOf(other)), 0)
}

async function reloadedIssuer({ database, one, other }: Pair): Promise<void> {
  put(one.home, 'deployment.toml', `${ISSUER}${database.toml}`.replace('gateway.example', 'other.example'))
  const report = await sendCommand<{ readonly restart: readonly object[] }>(one.home.data, { command: 'reload' })
  assert.match(JSON.stringify(report.restart), /oauth\.oidc\.id_token\.issuer/)
  assert.equal(await codeOf(other, await tokenOf(one)), 0)
}
