/** Messages that pass: what sequences read of them, and how what they change goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BodySource, Message } from '../../src/mediation/message.ts'
import { fromTransfer, toTransfer } from '../../src/mediation/message-transfer.ts'
import { NO_STATE, type TransferredMessage } from '../../src/mediation/worker-task.ts'
import { compiled } from './test-sequences.ts'

const REQUEST: TransferredMessage = {
  method: 'POST',
  target: '/pets/7/photos?limit=5&name=a%20b&limit=6',
  status: 0,
  reason: '',
  fields: [
    ['Host', 'a'],
    ['X-List', '1'],
    ['Content-Type', 'application/json; charset=utf-8'],
    ['x-list', '2'],
    ['Authorization', 'Bearer t'],
  ],
  body: { kind: 'bytes', bytes: new Uint8Array() },
  state: NO_STATE,
}
const RESPONSE: TransferredMessage = { ...REQUEST, status: 201, reason: 'Made' }

interface Passed {
  readonly message: Message
  readonly result: TransferredMessage
  /** Bodies that were built. */
  readonly built: number
  /** Content types in place of the received one. */
  readonly types: readonly string[]
  readonly warnings: readonly string[]
  /** What the sequence logged. */
  readonly logged: readonly string[]
}

/** Runs steps on a message with a JSON body. */
async function pass(steps: string, given = REQUEST): Promise<Passed> {
  let built = 0
  const types: string[] = []
  const warnings: string[] = []
  const logged: string[] = []
  const report = (level: string, event: string, fields: Readonly<Record<string, string | number>>) => {
    if (event === 'sequence log') logged.push(String(fields.MESSAGE))
    else warnings.push(`${level}: ${fields.CAUSE_OF_ERROR}, ${fields.FIELD ?? ''}`)
  }
  const body: BodySource = {
    build(contentType) {
      built++
      types.push(contentType)
      return { kind: 'json', text: '{"a":1}' }
    },
    text: () => '{"a":1}',
  }
  const message = fromTransfer(given, body)
  const sequences = await compiled(steps, report)
  await sequences.run('one', message)
  const format = ({ payload }: Message) => {
    const text = payload !== null && 'text' in payload ? payload.text : 'other'
    return { body: { kind: 'bytes', bytes: Buffer.from(text) }, contentType: 'made/type' } as const
  }
  return { message, result: toTransfer(message, format, report), built, types, warnings, logged }
}

const get = (name: string, scope = 'default') => `get-property('${scope}', '${name}')`

/** Expression, and its text over the request. */
const READS: readonly (readonly [string, string])[] = [
  ['$trp:X-LIST', '1, 2'],
  [get('host', 'transport'), 'a'],
  ['$axis2:HTTP_METHOD', 'POST'],
  [get('REST_URL_POSTFIX', 'axis2'), REQUEST.target],
  ['$url:limit', '5'],
  ['$url:name', 'a b'],
  ['$url:none', ''],
  ["get-property('query.param.limit')", '5'],
  ["get-property('uri.var.id')", '7'],
  ["get-property('uri.var.none')", ''],
  ["string(get-property('axis2', 'HTTP_SC'))", ''],
]

for (const [expression, expected] of READS) {
  test(`${expression} of a request is "${expected}"`, async () => {
    const described = {
      ...REQUEST,
      state: { ...NO_STATE, default: [['API_ELECTED_RESOURCE', '/pets/{id}/*']] as const },
    }
    const { message, built } = await pass(`<property name="it" expression="${expression}"/>`, described)
    assert.deepEqual([message.get('default', 'it'), built], [expected, 0])
  })
}

test('a response has its status and reason, and the method of its request', async () => {
  const names = ['HTTP_SC', 'HTTP_SC_DESC', 'HTTP_METHOD']
  const { message } = await pass(
    names.map(name => `<property name="${name}" expression="$axis2:${name}"/>`).join(''),
    RESPONSE,
  )
  assert.deepEqual(
    names.map(name => message.get('default', name)),
    ['201', 'Made', 'POST'],
  )
  assert.equal(message.isResponse, true)
})

test('a message that no step touches goes on as it came, its body unread', async () => {
  for (const given of [REQUEST, RESPONSE]) {
    const { result, built } = await pass('<property name="a" value="1"/>', given)
    const state = { ...NO_STATE, default: [['a', '1']] }
    assert.deepEqual([result, built], [{ ...given, body: { kind: 'untouched' }, state }, 0])
  }
})

test('a body that is read is built once and goes on as it came', async () => {
  const { result, built } = await pass('<property name="a" expression="json-eval($.a)"/><log level="full"/>')
  assert.deepEqual([result.body, built], [{ kind: 'untouched' }, 1])
  assert.equal(result.fields.length, REQUEST.fields.length)
})

/** Steps, and the fields of the result that differ from the request. */
const CHANGES: readonly (readonly [string, Partial<TransferredMessage>])[] = [
  ['<property name="HTTP_METHOD" value="PUT" scope="axis2"/>', { method: 'PUT' }],
  [
    '<property name="REST_URL_POSTFIX" value="/a b/ü?c=%20&quot;" scope="axis2"/>',
    { target: '/a%20b/%C3%BC?c=%20%22' },
  ],
  ['<property name="REST_URL_POSTFIX" value="a" scope="axis2"/>', { target: '/a' }],
  ['<property name="REST_URL_POSTFIX" value="?a" scope="axis2"/>', { target: '?a' }],
  ['<property name="REST_URL_POSTFIX" scope="axis2" action="remove"/>', { target: '' }],
  ['<property name="HTTP_SC" value="299" scope="axis2"/>', { status: 299 }],
  ['<property name="HTTP_SC" value="42" scope="axis2"/>', { status: 500 }],
]

for (const [steps, expected] of CHANGES) {
  test(`${steps} changes the start line`, async () => {
    const { result } = await pass(steps)
    assert.deepEqual({ ...result, body: REQUEST.body, state: NO_STATE }, { ...REQUEST, ...expected })
  })
}

test('fields are set, replaced with all their values, and removed', async () => {
  const steps =
    '<property name="X-List" value="3" scope="transport"/>' +
    '<header name="authorization" scope="transport" action="remove"/>' +
    '<header name="X-New" value="n" scope="transport"/>'
  const { result } = await pass(steps)
  assert.deepEqual(result.fields, [
    ['Host', 'a'],
    ['Content-Type', 'application/json; charset=utf-8'],
    ['X-List', '3'],
    ['X-New', 'n'],
  ])
})

test('without TRANSPORT_HEADERS a message has no fields but those that are set after it', async () => {
  const steps =
    '<property name="X-Old" value="1" scope="transport"/>' +
    '<property name="TRANSPORT_HEADERS" scope="axis2" action="remove"/>' +
    '<property name="X-New" value="1" scope="transport"/>'
  assert.deepEqual((await pass(steps)).result.fields, [['X-New', '1']])
})

test('a fault is a success with FAULTS_AS_HTTP_200', async () => {
  const steps = '<property name="FAULTS_AS_HTTP_200" value="true" scope="axis2"/>'
  for (const [status, expected] of [
    [500, 200],
    [404, 404],
  ] as const) {
    assert.equal((await pass(steps, { ...RESPONSE, status })).result.status, expected)
  }
})

test('a field value that cannot be sent is left out and reported', async () => {
  const { result, warnings } = await pass('<property name="X" expression="\'a&#10;b: c\'" scope="transport"/>')
  assert.deepEqual(result.fields, REQUEST.fields)
  assert.deepEqual(warnings, ['warn: has characters that a header field cannot have, x'])
})

/** Steps, and kind of body and Content-Type of the result. */
const BODIES: readonly (readonly [string, string, string | undefined])[] = [
  ['<payloadFactory media-type="text"><format>x</format></payloadFactory>', 'bytes', 'made/type'],
  [
    '<property name="messageType" value="application/json" scope="axis2"/>',
    'untouched',
    'application/json; charset=utf-8',
  ],
  ['<property name="messageType" value="application/xml" scope="axis2"/>', 'bytes', 'made/type'],
  ['<property name="ContentType" value="a/b" scope="axis2"/>', 'untouched', 'a/b'],
  ['<property name="Content-Type" value="a/b" scope="transport"/>', 'untouched', 'a/b'],
  ['<property name="NO_ENTITY_BODY" value="true" scope="axis2"/>', 'none', undefined],
]

for (const [steps, kind, type] of BODIES) {
  test(`after ${steps} the body is ${kind}`, async () => {
    const { result } = await pass(steps)
    const types = result.fields.filter(([name]) => name.toLowerCase() === 'content-type').map(([, value]) => value)
    assert.deepEqual([result.body.kind, types], [kind, type === undefined ? [] : [type]])
  })
}

test('a request that becomes the response has only the fields that a sequence has set', async () => {
  const { result } = await pass('<property name="X-New" value="n" scope="transport"/><respond/>')
  assert.deepEqual([result.status, result.body.kind], [200, 'untouched'])
  assert.deepEqual(result.fields, [
    ['X-New', 'n'],
    ['Content-Type', 'application/json; charset=utf-8'],
  ])
  const fault = await pass(
    '<makefault version="soap11"><code value="s11:Server"/><reason value="r"/></makefault><respond/>',
  )
  assert.equal(fault.result.status, 500)
})

test('properties, variables and the destination reach the next flow, those of one message do not', async () => {
  const steps =
    '<property name="a" value="1"/><property name="b" value="2" scope="operation"/><header name="To" value="/to"/>' +
    '<property name="c" value="3" scope="axis2"/><property name="messageType" value="text/plain" scope="axis2"/>'
  const { result, message } = await pass(steps)
  message.set('variable', 'd', 4)
  assert.deepEqual(result.state, {
    default: [['a', '1']],
    axis2: [['c', '3']],
    operation: [['b', '2']],
    variables: [],
    to: '/to',
  })
  const next = fromTransfer({ ...RESPONSE, state: message.stateForNextFlow() }, null)
  assert.deepEqual([next.get('operation', 'b'), next.get('variable', 'd'), next.to], ['2', 4, '/to'])
  assert.equal(next.get('axis2', 'messageType'), undefined)
})

test('the log of the next flow masks what was read from a secret field', async () => {
  const { result } = await pass('<property name="kept" expression="$trp:Authorization"/>')
  const log = '<log level="custom"><property name="it" expression="$ctx:kept"/></log>'
  const { logged } = await pass(log, { ...RESPONSE, fields: [], state: result.state })
  assert.deepEqual(logged, ['it = ***'])
})

test('a copy changes nothing of its original, and has all of it', async () => {
  const { message } = await pass('<property name="X-List" value="3" scope="transport"/>')
  const copy = message.copy()
  copy.set('default', 'a', 1)
  copy.set('transport', 'X-List', 4)
  copy.json = { b: 1 }
  assert.deepEqual(
    [message.get('default', 'a'), message.get('transport', 'x-list'), message.json],
    [undefined, '3', { a: 1 }],
  )
  assert.deepEqual([copy.get('transport', 'host'), copy.json, copy.head.method], ['a', { b: 1 }, 'POST'])
})

test('builder builds the body now, as the content type that its row names', async () => {
  const row = '<messageBuilder contentType="application/json" class="org.example.PlainTextBuilder"/>'
  for (const [steps, type] of [
    ['<builder/>', ''],
    [`<builder>${row}</builder>`, 'text/plain'],
    [`<builder>${row.replace('json', 'xml')}</builder>`, ''],
  ] as const) {
    const { built, types, result } = await pass(steps)
    assert.deepEqual([built, types, result.body.kind], [1, [type], 'untouched'])
  }
})

test('log lists the fields that pass', async () => {
  const { logged } = await pass('<header name="X-New" value="n" scope="transport"/><log level="headers"/>')
  const expected = 'Host: a, X-List: 1, Content-Type: application/json; charset=utf-8, x-list: 2'
  assert.equal(logged.length, 1)
  assert.equal(logged[0]!.slice(0, expected.length), expected)
  assert.ok(logged[0]!.includes('X-New: n'))
  assert.ok(!logged[0]!.includes('Bearer t'), 'secret fields are masked')
})
