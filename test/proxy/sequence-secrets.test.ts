/** Variables of the environment and credentials, which sequences use and nothing shows: real worker threads. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusingPort } from '../harness/peers.ts'
import { says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const SECRETS = { PLAIN: 'open-sesame', LONGER: 'open-sesame-and-more', MARKED: 'pa"ss&w<or>d\\ü%' }
for (const [name, value] of Object.entries(SECRETS)) process.env[`SLUICE_TEST_${name}`] = value
const read = (name: keyof typeof SECRETS) => `get-property('env', 'SLUICE_TEST_${name}')`
const set = (name: string, expression: string) => `<property name="${name}" expression="${expression}"/>`
const argument = `<args><arg expression="${read('MARKED')}"/></args>`
const made = (media: string, format: string) =>
  `<payloadFactory media-type="${media}"><format>${format}</format>${argument}</payloadFactory><log level="full"/>`
const logged = '<log level="custom"><property name="it" expression="$ctx:it"/></log>'

/** Steps, and what they log. */
const LOGGED: readonly (readonly [what: string, steps: string, message: string])[] = [
  ['in JSON, whose escapes it has', made('json', '{"p":"$1"}'), 'To: /a/x, Payload: {"p":"***"}'],
  ['in XML, whose escapes it has', made('xml', '<p xmlns="">$1</p>'), 'To: /a/x, Payload: <p xmlns="">***</p>'],
  ['in base64, as a property', `${set('it', `base64Encode(fn:concat('u:', ${read('PLAIN')}))`)}${logged}`, 'it = ***'],
  ['in the escapes of URLs, as a property', `${set('it', `url-encode(${read('MARKED')})`)}${logged}`, 'it = ***'],
  [
    'computed from a copy',
    `${set('copy', read('PLAIN'))}${set('it', "fn:concat('Basic ', base64Encode($ctx:copy))")}${logged}`,
    'it = ***',
  ],
  [
    'that begins as another one',
    `${set('first', read('PLAIN'))}${set('it', read('LONGER'))}
      <log level="custom"><property name="it" expression="fn:concat('(', $ctx:it, ')')"/></log>`,
    'it = (***)',
  ],
]

for (const [what, steps, message] of LOGGED) {
  test(`the log masks a variable of the environment ${what}`, async t => {
    const { ask, gateway } = await startCalls(t, { request: `${steps}<respond/>` }, 1)
    await ask()
    const messages = gateway.reports.filter(({ event }) => event === 'sequence log').map(({ fields }) => fields.MESSAGE)
    assert.deepEqual(messages, [message])
  })
}

const call = (port: number) =>
  `<call><endpoint><http method="get" uri-template="http://127.0.0.1:${port}/bot{uri.var.it}/send?of={uri.var.it}"/>
    </endpoint></call><respond/>`

test('a call has a variable of the environment in its URL, and its failure does not show it', async t => {
  const refusing = await refusingPort()
  t.after(refusing.close)
  const secret = set('uri.var.it', read('LONGER'))
  const { ask, gateway } = await startCalls(t, { request: secret + call(refusing.port) }, 1)
  assert.match((await ask())[1], /101503/)
  const failed = gateway.reports.find(({ event }) => event === 'backend failed')
  assert.equal(failed?.fields.HTTP_URL, '/bot***/send?of=***')
  assert.ok(!JSON.stringify(gateway.reports).includes(SECRETS.PLAIN))

  const target = `/bot${SECRETS.LONGER}/send?of=${SECRETS.LONGER}`
  const backend = await startBackend(t, { [target.split('?')[0]!]: says(200, '{"sent":true}') })
  const good = await startCalls(t, { request: secret + call(backend.port) }, 1)
  assert.deepEqual(await good.ask(), [200, '{"sent":true}'])
  assert.equal(backend.received[0]!.target, target)
})

test('credentials of an endpoint are in the request for it alone', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const http = (inner: string) =>
    `<endpoint><http method="get" uri-template="http://127.0.0.1:${backend.port}/x">${inner}</http></endpoint>`
  const credentials = `<authentication><basicAuth><username>ann</username>
    <password>{${read('PLAIN')}}</password></basicAuth></authentication>`
  const request = `<call>${http(credentials)}</call><log level="headers"/><call>${http('')}</call><respond/>`
  const { ask, gateway } = await startCalls(t, { request }, 1)
  assert.deepEqual(await ask(), [200, '{}'])
  const encoded = Buffer.from(`ann:${SECRETS.PLAIN}`).toString('base64')
  const authorizations = backend.received.map(({ head }) => /^authorization: (.*)\r$/im.exec(head)?.[1])
  assert.deepEqual(authorizations, [`Basic ${encoded}`, undefined])
  const reports = JSON.stringify(gateway.reports)
  assert.ok(!reports.includes(encoded) && !reports.includes(SECRETS.PLAIN), reports)
})
