/** A home in the layout of the reference platform, with a typical configuration file, starts unchanged. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { RSA_SERVER } from '../harness/certificates.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { ask, type Home, launch, type Program } from '../harness/program.ts'
import { connectSecured } from '../harness/secured-peers.ts'
import { RSA_JKS, TRUST_JKS } from '../tls/fixtures/stores.ts'

const failed: Program[] = []
after(async () => {
  await leave()
  for (const program of failed) await program.kill()
})

const STYLE = join(import.meta.dirname, '../config/reference-homes/all-in-one.toml')
const HTTPS = 'transport.passthru_https.listener.'
const SETS = [`${HTTPS}enable=true`, `${HTTPS}parameters.port=0`, 'logging.level=info']

function platformHome(change: (text: string) => string = text => text): Home {
  const at = home(backend.port, 'new')
  rmSync(join(at.path, 'deployment.toml'))
  const conf = join(at.path, 'repository/conf')
  const security = join(at.path, 'repository/resources/security')
  for (const folder of [conf, security]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(conf, 'deployment.toml'), change(readFileSync(STYLE, 'utf8')))
  writeFileSync(join(security, 'gateway.jks'), RSA_JKS)
  writeFileSync(join(security, 'client-truststore.jks'), TRUST_JKS)
  return at
}

/** Warnings of the start about the file, which is named `F`. */
function warningsOf(program: Program, at: Home): readonly string[] {
  const file = join(at.path, 'repository/conf/deployment.toml')
  return program.events
    .filter(({ level, THREAD }) => level === 'warn' && THREAD === undefined)
    .map(({ msg }) => String(msg).replaceAll(file, 'F'))
}

test('both listeners serve, with the key store of the platform, and the data folder is in the home', async () => {
  const at = platformHome()
  const { program, port } = await start(at, SETS)
  assert.match(await ask(port, 'GET', '/t/it'), /^HTTP\/1\.1 200 OK\r\n/)
  const [, secured] = await program.said.until(/^listening on https:\/\/\S*:(\d+)$/m)
  const { peer, tls } = await connectSecured(Number(secured), { servername: 'localhost', rejectUnauthorized: false })
  assert.equal(tls.getPeerX509Certificate()!.serialNumber, new X509Certificate(RSA_SERVER.cert).serialNumber)
  peer.destroy()
  assert.ok(existsSync(join(at.data, 'lock')))
  assert.ok(!existsSync(join(at.data, 'listener.pem')), 'no certificate of its own is made')
})

test('unknown and inert keys are warnings in few lines, with their places and without secrets', async () => {
  const at = platformHome()
  const { program } = await start(at, SETS)
  const warnings = warningsOf(program, at)
  assert.ok(warnings.length > 10 && warnings.length < 40, warnings.join('\n'))
  for (const warning of warnings) assert.match(warning, /^F:\d+: /)
  // An unknown section is one warning, however many keys it has.
  const about = (text: string): readonly string[] => warnings.filter(warning => warning.includes(text))
  assert.equal(about('event_handler').length, 1)
  assert.match(about('event_handler')[0]!, /unknown section .*it has no effect$/)
  assert.match(
    about('service_url, username, password: are accepted')[0]!,
    /apim\.gateway\.environment\[0\]: service_url, username, password: are accepted and not acted on/,
  )
  assert.match(about('[0]: display_in_api_console')[0]!, /have no effect unless management\.enable is true/)
  // What a Java class would do is not done, and the start says so.
  assert.match(
    about('token_exchange.grant_handler')[0]!,
    /is a Java class, which cannot be loaded: the grant is refused/,
  )
  for (const secret of ['changeme', 'apimpw', 'sharedpw', 'storepw', 'keypw']) {
    assert.ok(!program.err.text.includes(secret), secret)
    assert.ok(!program.out.text.includes(secret), secret)
  }
})

test('environment variables set its keys', async () => {
  const at = platformHome()
  const { port } = await start(at, SETS, {
    SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_MAX_CONNECTIONS_PER_CLIENT: '5',
    SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_TARGET_MAX_BYTES: '30',
  })
  assert.match(await ask(port, 'GET', `/t/${'x'.repeat(40)}`), /^HTTP\/1\.1 414 /)
})

test('errors in the file refuse the start, each with its line', async () => {
  const at = platformHome(text =>
    text
      .replace('enable_start_tls = true', 'enable_start_tls = "perhaps"')
      .replace('type = "hybrid"', 'type = "hybird"'),
  )
  const program = launch(at, SETS)
  failed.push(program)
  assert.equal((await program.exited).code, 78)
  const file = join(at.path, 'repository/conf/deployment.toml')
  const lines = program.err.text.trimEnd().split('\n')
  const messages = lines.map(line => String(JSON.parse(line).msg).replaceAll(file, 'F'))
  assert.deepEqual(messages, [
    'F:47: apim.gateway.environment[0].type = "hybird": expected one of "production", "sandbox", "hybrid" (did you mean "hybrid"?)',
    'F:123: apim.notification.enable_start_tls = "perhaps": expected true or false (the default is enable_start_tls = false)',
  ])
})
