/** `<log>`: text, level, and masked secrets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testRefusals, run } from './test-sequences.ts'

const FIELDS = {
  authorization: 'Bearer very-secret',
  'proxy-authorization': 'Basic c2VjcmV0',
  cookie: 'session=4711',
  'x-api-key': 'k-e-y',
  // Names that are secret as query parameters too.
  'x-amz-signature': 'aabbcc',
  'x-session-id': 's-4711',
  accept: 'a/b',
}

async function logged(steps: string): Promise<readonly (readonly [string, string])[]> {
  const { reports } = await run(steps, { fields: FIELDS, json: { a: 1 }, properties: { p: 'value' } })
  return reports.map(([level, event, fields]) => {
    assert.equal(event, 'sequence log')
    assert.equal(fields.SEQUENCE, 'one.xml:1')
    return [level, String(fields.MESSAGE)]
  })
}

/** Step, level, text. */
const LINES: readonly (readonly [string, string, string])[] = [
  ['<log/>', 'info', 'To: '],
  ['<log level="simple"><property name="a" expression="$ctx:p"/></log>', 'info', 'To: , a = value'],
  ['<log level="custom" logFullPayload="true"><property name="a" value="1"/></log>', 'info', 'a = 1, Payload: {"a":1}'],
  ['<log level="custom"><property name="a" value="1"/><property name="b" value="2"/></log>', 'info', 'a = 1, b = 2'],
  [
    '<log level="custom" separator=" | "><property name="a" value="1"/><property name="b" value="2"/></log>',
    'info',
    'a = 1 | b = 2',
  ],
  [
    `<log><message>p is \${properties.synapse.p}, a is \${payload.a == 1 ? "{1}" : '}'}.</message></log>`,
    'info',
    'p is value, a is {1}.',
  ],
  [`<log><message>as is</message><property name="a" value="1"/></log>`, 'info', 'as is, a = 1'],
  [`<log><message>\${headers.authorization}</message></log>`, 'info', '***'],
  ['<log level="full"/>', 'info', 'To: , Payload: {"a":1}'],
  ['<log level="headers"/>', 'info', 'X-Out: 1, Set-Cookie: ***'],
  ['<log level="custom"><property name="a" expression="//a"/></log>', 'info', 'a = 1'],
  ...(['INFO', 'DEBUG', 'TRACE', 'WARN', 'ERROR', 'FATAL'] as const).map((category, at) => {
    const level = ['info', 'debug', 'debug', 'warn', 'error', 'error'][at]!
    return [`<log category="${category}"/>`, level, 'To: '] as const
  }),
]

for (const [step, level, text] of LINES) {
  test(`${step} logs ${text}`, async () => {
    const set =
      '<property name="X-Out" value="1" scope="transport"/><property name="Set-Cookie" value="s=1" scope="transport"/>'
    assert.deepEqual(await logged(set + step), [[level, text]])
  })
}

test('values of secret fields, and values computed from them, are masked', async () => {
  const of = (expression: string) => `<log level="custom"><property name="a" expression="${expression}"/></log>`
  for (const name of [
    'Authorization',
    'Proxy-Authorization',
    'COOKIE',
    'X-Api-Key',
    'X-Amz-Signature',
    'X-Session-Id',
  ]) {
    assert.deepEqual(await logged(of(`$trp:${name}`)), [['info', 'a = ***']])
    assert.deepEqual(await logged(of(`concat('x', base64Encode(get-property('transport', '${name}')))`)), [
      ['info', 'a = ***'],
    ])
    const copied = `<property name="c" expression="concat('[', $trp:${name}, ']')"/>${of('$ctx:c')}`
    assert.deepEqual(await logged(copied), [['info', 'a = [***]']])
    const within = `<format>is $1</format><args><arg expression="$trp:${name}"/></args>`
    const payload = `<payloadFactory media-type="text">${within}</payloadFactory>`
    assert.deepEqual(await logged(`${payload}<log level="full"/>`), [['info', 'To: , Payload: is ***']])
  }
  assert.deepEqual(await logged(of('$trp:Accept')), [['info', 'a = a/b']])
})

test('the text is limited in length', async () => {
  const doubled = '<property name="a" expression="concat($ctx:a, $ctx:a)"/>'.repeat(12)
  const [[, text] = ['', '']] = await logged(
    `<property name="a" value="x"/>${doubled}<log level="custom"><property name="a" expression="$ctx:a"/></log>`,
  )
  assert.equal(text.length, 2048)
})

/** Step and its error. */
const REFUSED: readonly (readonly [string, string])[] = [
  ['<log level="loud"/>', 'log/level = loud: expected one of simple, full, headers, custom'],
  ['<log category="LOUD"/>', 'log/category = LOUD: expected one of INFO'],
  ['<log><property/></log>', 'property/name: is missing'],
  ['<log><property name="a"/></log>', 'property/value: expected either value or expression'],
  ['<log><property name="a" value="1" scope="axis2"/></log>', 'property/scope: is an unknown attribute'],
  ['<log><send/></log>', 'send: is not an element of <log>'],
]

testRefusals(REFUSED)

test('the text has the id of the message where the step asks for it', async () => {
  const [[, text] = ['', '']] = await logged('<log level="custom" logMessageID="true"/>')
  assert.match(text, /^MessageID: urn:uuid:[\da-f-]{36}$/)
})

/** [payload, what the log shows of it]. */
const PAYLOADS: readonly (readonly [string, string])[] = [
  ['{"user":"ann","password":"p,\\"w"}', '{"user":"ann","password":"***"}'],
  ['{"client_secret":["a",{"b":"]"}],"n":1}', '{"client_secret":"***","n":1}'],
  ['{"a":{"refresh\\u005ftoken":{"v":1}}}', '{"a":{"refresh_token":"***"}}'],
  ['{"access_token":12345}', '{"access_token":"***"}'],
  ['{"note":"no secret","monkey":1}', '{"note":"no secret","monkey":1}'],
  // `code` and `key` are names of ordinary members too.
  ['{"code":"A1","key":7,"b":[{"key":"size","value":"L"}]}', '{"code":"A1","key":7,"b":[{"key":"size","value":"L"}]}'],
  ['{"code":{"text":"a long text of 2 lines"}}', '{"code":{"text":"a long text of 2 lines"}}'],
  ['{"code":["A1","A2"],"key":null}', '{"code":["A1","A2"],"key":null}'],
  ['{"code":{"token":"t"},"n":1}', '{"code":{"token":"***"},"n":1}'],
  ['{"grant_type":"authorization_code","code":"A1"}', '{"grant_type":"authorization_code","code":"***"}'],
  ['{"code":"SplxlOBeZQQYbYS6WxSbIA","n":1}', '{"code":"***","n":1}'],
  ['{"key":"AIzaSyD-1234567890","n":1}', '{"key":"***","n":1}'],
  ['{"key":["a","AIzaSyD-1234567890"],"n":1}', '{"key":"***","n":1}'],
]
for (const [payload, shown] of PAYLOADS) {
  test(`secret members of a payload are masked: ${shown}`, async () => {
    for (const step of [
      '<log level="full"/>',
      '<log level="custom"><property name="p" expression="json-eval($)"/></log>',
      `<log level="custom"><message>\${payload}</message></log>`,
    ]) {
      const { reports } = await run(step, { json: JSON.parse(payload) })
      assert.match(
        String(reports[0]![2].MESSAGE),
        new RegExp(`^(?:To: , Payload: |p = )?${RegExp.escape(shown)}$`),
        step,
      )
    }
  })
}
