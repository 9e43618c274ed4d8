import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_ENDPOINT_SETTINGS, LONE_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { parseEndpointFile } from '../../src/mediation/sequence-parser.ts'
import { errorsOf, file, parseFile, planOf } from './test-sequences.ts'

const call = (endpoint: string) => `<call><endpoint>${endpoint}</endpoint></call>`
const urls = (...of: readonly string[]) => of.map(url => `<endpoint><address uri="${url}"/></endpoint>`).join('')
const failover = (members: string) => `<failover>${members}</failover>`
const http = (grant: string) =>
  `<http uri-template="http://h"><authentication><oauth>${grant}</oauth></authentication></http>`
const oauth = (grant: string) => call(http(grant))
const client = (inner: string) => oauth(`<clientCredentials>${inner}</clientCredentials>`)
const PAIR = '<clientId>c</clientId><clientSecret>s</clientSecret>'
const URL_PAIR = `${PAIR}<tokenUrl>https://h/t</tokenUrl>`
const protectedHttp = http(`<clientCredentials>${URL_PAIR}</clientCredentials>`)

const refused: readonly (readonly [steps: string, expected: string])[] = [
  ['<call><endpoint/></call>', 'endpoint: is empty'],
  ['<call><endpoint key=""/></call>', 'endpoint/key: is missing'],
  ['<call><endpoint key="{get-property("/></call>', 'endpoint/key: expected the name of an endpoint'],
  ['<call><endpoint key="{concat(}"/></call>', 'endpoint/key: is not valid XPath'],
  ['<call><endpoint key-expression="concat("/></call>', 'endpoint/key-expression: is not valid XPath'],
  ['<call><endpoint key-expression="$ctx:a"><default/></endpoint></call>', 'default: is not an element of <endpoint>'],
  ['<callout><endpoint key-expression="$ctx:a"/></callout>', 'endpoint/key-expression: is an unknown attribute'],
  ['<sequence key="a" key-expression="$ctx:a"/>', 'sequence/key: is given twice'],
  ['<call><endpoint key="conf:/x"/></call>', 'endpoint/key: expected the name of an endpoint'],
  ['<call><endpoint key="x"><default/></endpoint></call>', 'default: is not an element of <endpoint>'],
  ['<call><endpoint key="a"/><endpoint key="b"/></call>', 'endpoint: is repeated'],
  ['<call endpoint="a"/>', 'call/endpoint: is an unknown attribute'],
  ['<call blocking="perhaps"/>', 'call/blocking: expected one of true, false'],
  ['<call><source type="property"/></call>', 'source: is empty'],
  ['<call><source type="custom">json-eval(</source></call>', 'source: is not valid'],
  ['<call><target type="property"/></call>', 'target: is empty'],
  ['<call><target type="header">x</target></call>', 'target/type: expected one of body, property, variable'],
  ['<send receive=""/>', 'send/receive: is missing'],
  ['<send><log/></send>', 'log: is not an element of <send>'],
  [call('<wsdl uri="http://h/x?wsdl" service="s" port="p"/>'), 'wsdl: is not supported'],
  [call('<recipientlist/>'), 'recipientlist: expected 1 to 100 recipients'],
  [call(`<recipientlist>${urls(...Array(101).fill('http://h'))}</recipientlist>`), 'recipientlist: expected 1 to 100'],
  [call('<recipientlist><session/></recipientlist>'), 'session: is not supported in a group'],
  [call('<recipientlist><endpoints/></recipientlist>'), 'endpoints/value: is missing'],
  [call('<recipientlist><endpoints value="{concat(}"/></recipientlist>'), 'endpoints/value: is not valid XPath'],
  [
    call('<recipientlist><endpoints value="http://h" max-cache="0"/></recipientlist>'),
    'endpoints/max-cache: expected a number from 1 to 128',
  ],
  [
    call(`<recipientlist><endpoints value="http://h"/>${urls('http://h')}</recipientlist>`),
    'endpoint: is not an element of <recipientlist>',
  ],
  [
    call(failover(`<endpoint><recipientlist>${urls('http://h')}</recipientlist></endpoint>`)),
    'recipientlist: is not supported in a group',
  ],
  [
    `<clone><target><endpoint><recipientlist>${urls('http://h')}</recipientlist></endpoint></target></clone>`,
    'endpoint: is a list of recipients, to which only <send> and <call>',
  ],
  ['<call><endpoint template="" uri="http://h"/></call>', 'endpoint/template: is missing'],
  ['<call><endpoint template="t" key="k"/></call>', 'endpoint/key: is an unknown attribute'],
  ['<call><endpoint template="t"><address uri="http://h"/></endpoint></call>', 'address: is not an element of'],
  ['<call><endpoint template="t"><parameter value="v"/></endpoint></call>', 'parameter/name: is missing'],
  ['<call><endpoint template="t"><parameter name="a"/></endpoint></call>', 'parameter/value: is missing'],
  [
    '<call><endpoint template="t" uri="http://h"><parameter name="uri" value="v"/></endpoint></call>',
    'parameter/name: is given twice',
  ],
  [call('<folder/>'), 'folder: is not a form of endpoint'],
  [call('<address/>'), 'address/uri: is missing'],
  [call('<address uri="jms:/queue"/>'), 'address/uri: must be an http'],
  [call('<address uri="http://u:p@h/"/>'), 'address/uri: must not hold a user or password'],
  [call('<address uri="http://h/a b"/>'), 'address/uri: must name a host'],
  [call('<address uri="http://h" format="yaml"/>'), 'address/format: expected one of'],
  [call('<address uri="http://h" retries="3"/>'), 'address/retries: is an unknown attribute'],
  [call('<address uri="http://h"><enableSec/></address>'), 'enableSec: is not supported'],
  [call('<http uri-template="http://h/{name}"/>'), 'http/uri-template: has a variable that is neither'],
  [call('<http uri-template="http://h/{uri.var.a"/>'), 'http/uri-template: has a "{" without its "}"'],
  [call('<http uri-template="{uri.var.a}#x"/>'), 'http/uri-template: must hold neither white space nor a fragment'],
  [call('<http uri-template="ftp://{uri.var.a}/"/>'), 'http/uri-template: must be an http or https URL'],
  [call('<http uri-template="http://h" method="trace"/>'), 'http/method: expected one of'],
  [call('<http uri-template="http://h"><authentication/></http>'), 'authentication: is empty'],
  [oauth(''), 'oauth: is empty'],
  [oauth('<implicit/>'), 'implicit: is not an element of <oauth>'],
  [oauth('<clientCredentials/><passwordCredentials/>'), 'passwordCredentials: is a second grant'],
  [
    call(`<http uri-template="http://h"><authentication><basicAuth/><oauth/></authentication></http>`),
    'oauth: stands beside <basicAuth>',
  ],
  [client(''), 'clientCredentials/clientId: is missing'],
  [client('<clientId>c</clientId>'), 'clientCredentials/clientSecret: is missing'],
  [client(`${PAIR}`), 'clientCredentials/tokenUrl: is missing'],
  [client(`${PAIR}<tokenUrl>http://h/t</tokenUrl>`), 'tokenUrl: must be https, or lead to this machine'],
  [client(`${PAIR}<tokenUrl>https://u:p@h/t</tokenUrl>`), 'tokenUrl: must be https, or lead to this machine'],
  [client(`${URL_PAIR}<authMode>both</authMode>`), 'authMode: expected header or payload'],
  [client(`${URL_PAIR}<username>u</username>`), 'username: is not an element of <clientCredentials>'],
  [client(`${URL_PAIR}<proxyConfigs/>`), 'proxyConfigs: is not an element of <clientCredentials>'],
  [client('<clientId>{json-eval($.id)}</clientId>'), 'clientId: depends on messages'],
  [client('<clientId>{concat(}</clientId>'), 'clientId: is not a valid expression'],
  [client("<clientId>{get-property('env', 'SLUICE_TEST_NONE')}</clientId>"), 'clientId: reads SLUICE_TEST_NONE, which'],
  [
    client(`<clientId>${'c'.repeat(1025)}</clientId><clientSecret>s</clientSecret>`),
    'clientId: is longer than 1024 characters',
  ],
  [
    client(`${URL_PAIR}<requestParameters><parameter name="grant_type">x</parameter></requestParameters>`),
    'parameter/name: is set by the gateway',
  ],
  [client(`${URL_PAIR}<customHeaders><header>x</header></customHeaders>`), 'header/name: is missing'],
  [
    client(`${URL_PAIR}<customHeaders><header name="Host">x</header></customHeaders>`),
    'header/name: is set by the gateway',
  ],
  [
    client(`${URL_PAIR}<customHeaders><header name="a b">x</header></customHeaders>`),
    'header: cannot stand in a header',
  ],
  [
    oauth(`<passwordCredentials>${URL_PAIR}<username>u</username></passwordCredentials>`),
    'passwordCredentials/password: is missing',
  ],
  [oauth(`<authorizationCode>${URL_PAIR}</authorizationCode>`), 'authorizationCode/refreshToken: is missing'],
  [
    call(failover(`<endpoint><http uri-template="http://h"/></endpoint><endpoint>${protectedHttp}</endpoint>`)),
    'failover: has endpoints with different OAuth',
  ],
  [
    call(
      '<http uri-template="http://h"><authentication><basicAuth><username>u</username></basicAuth></authentication></http>',
    ),
    'basicAuth/password: is missing',
  ],
  [call('<address uri="http://h"><authentication/></address>'), 'authentication: is not an element of <address>'],
  [call('<default/><property value="x"/>'), 'property/name: is missing'],
  [call('<default/><property name="x"/>'), 'property/value: expected either value or expression'],
  [call('<default/><property name="x" value="y" scope="registry"/>'), 'property/scope: expected one of'],
  [call('<default uri="x"/>'), 'default/uri: is an unknown attribute'],
  [call('<failover/>'), 'failover: expected 1 to 32 endpoints'],
  [call('<failover><endpoint key="conf:/x"/></failover>'), 'endpoint/key: expected the name of an endpoint'],
  [
    call('<failover><endpoint><default/></endpoint></failover>'),
    'failover: has an endpoint whose address only messages',
  ],
  [call('<loadbalance><session type="http"/></loadbalance>'), 'session: is not supported in a group'],
  [
    call(`<loadbalance algorithm="Random">${urls('http://h')}</loadbalance>`),
    'loadbalance/algorithm: there is no such',
  ],
  [
    call(`<failover>${urls('http://h/?x=1', 'http://i/')}</failover>`),
    'failover: has endpoints with different variables',
  ],
  [
    call(
      failover(`<endpoint>${failover(`<endpoint>${failover(urls('http://h', 'http://i'))}</endpoint>`)}</endpoint>`),
    ),
    'failover: has a group within a group within it',
  ],
  [call('<loadbalance><member httpPort="80"/></loadbalance>'), 'member/hostName: is missing'],
  [
    call('<address uri="http://h"><timeout><duration>soon</duration></timeout></address>'),
    'timeout/duration: expected a whole number',
  ],
  [
    call('<address uri="http://h"><timeout><duration>{$ctx:t}</duration></timeout></address>'),
    'timeout/duration: is an expression, which is not supported here (write a number',
  ],
  [
    call('<address uri="http://h"><timeout><responseAction>retry</responseAction></timeout></address>'),
    'timeout/responseAction: expected fault, discard or never',
  ],
  [
    call('<address uri="http://h"><suspendOnFailure><errorCodes>soon</errorCodes></suspendOnFailure></address>'),
    'suspendOnFailure/errorCodes: expected error codes of six digits',
  ],
  [
    call(
      '<address uri="http://h"><suspendOnFailure><progressionFactor>0.5</progressionFactor></suspendOnFailure></address>',
    ),
    'suspendOnFailure/progressionFactor: expected a number of at least 1',
  ],
]

for (const [steps, expected] of refused) {
  test(`${steps} is refused`, async () => {
    const [key, what] = expected.split(': ') as [string, string]
    const errors = await errorsOf(steps)
    assert.ok(
      errors.some(error => error.startsWith(`one.xml:1: ${key}`) && error.includes(`: ${what}`)),
      errors.join('\n'),
    )
  })
}

const single = (url: string, settings = LONE_ENDPOINT_SETTINGS) => ({
  kind: 'urls',
  endpoints: { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [{ url, settings }] },
})
const forms: readonly (readonly [xml: string, form: object])[] = [
  ['<address uri="http://h/x"/>', { method: '', format: 'kept', appendsPath: true, address: single('http://h/x') }],
  [
    '<address uri="http://h/x" format="soap11"/>',
    { method: 'POST', format: 'soap11', appendsPath: false, address: single('http://h/x') },
  ],
  [
    '<address uri="http://h/x" format="get"/>',
    { method: 'GET', format: 'get', appendsPath: true, address: single('http://h/x') },
  ],
  [
    '<http uri-template="http://h/x" method="put"/>',
    { method: 'PUT', format: 'kept', appendsPath: false, address: single('http://h/x') },
  ],
  [
    '<default/>',
    { method: '', format: 'kept', appendsPath: true, address: { kind: 'message', settings: LONE_ENDPOINT_SETTINGS } },
  ],
  [
    '<http uri-template="https://h:1/a/{uri.var.id}?q={+uri.var.q}"/>',
    {
      method: '',
      format: 'kept',
      appendsPath: false,
      address: {
        kind: 'template',
        origin: 'https://h:1',
        pieces: ['/a/', { name: 'uri.var.id', keeps: false }, '?q=', { name: 'uri.var.q', keeps: true }],
        settings: LONE_ENDPOINT_SETTINGS,
      },
    },
  ],
  [
    '<http uri-template="http://{uri.var.host}/a"/>',
    {
      method: '',
      format: 'kept',
      appendsPath: false,
      address: {
        kind: 'template',
        origin: '',
        pieces: ['http://', { name: 'uri.var.host', keeps: false }, '/a'],
        settings: LONE_ENDPOINT_SETTINGS,
      },
    },
  ],
  [
    `<address uri="http://h"><timeout><duration>250</duration><responseAction>fault</responseAction></timeout>
      <suspendOnFailure><errorCodes>101503,101504</errorCodes><initialDuration>100</initialDuration>
        <progressionFactor>2.0</progressionFactor><maximumDuration>400</maximumDuration></suspendOnFailure>
      <markForSuspension><errorCodes>101505</errorCodes><retriesBeforeSuspension>3</retriesBeforeSuspension>
        <retryDelay>10</retryDelay></markForSuspension></address>`,
    {
      method: '',
      format: 'kept',
      appendsPath: true,
      address: single('http://h', {
        ...DEFAULT_ENDPOINT_SETTINGS,
        responseTimeoutMs: 250,
        suspensionMs: 100,
        suspensionFactor: 2,
        suspensionMaxMs: 400,
        suspendCodes: [101503, 101504],
        timeoutCodes: [101505],
        retriesBeforeSuspension: 3,
        retryDelayMs: 10,
      }),
    },
  ],
  [
    `<failover>${urls('http://a', 'http://b')}</failover>`,
    {
      method: '',
      format: 'kept',
      appendsPath: true,
      address: {
        kind: 'urls',
        endpoints: {
          kind: 'failover',
          algorithm: 'round_robin',
          failsOver: true,
          endpoints: ['http://a', 'http://b'].map(url => ({ url, settings: DEFAULT_ENDPOINT_SETTINGS })),
        },
      },
    },
  ],
  [
    `<loadbalance><endpoint>${failover(urls('http://a', 'http://b'))}</endpoint>${urls('http://c')}</loadbalance>`,
    {
      method: '',
      format: 'kept',
      appendsPath: true,
      address: {
        kind: 'urls',
        endpoints: {
          kind: 'load_balance',
          algorithm: 'round_robin',
          failsOver: true,
          endpoints: ['http://a', 'http://b', 'http://c'].map(url => ({ url, settings: DEFAULT_ENDPOINT_SETTINGS })),
          parts: [2, 1].map(size => ({ size, isInOrder: true, failsOver: true })),
        },
      },
    },
  ],
  [
    `<loadbalance algorithm="org.apache.synapse.endpoints.algorithms.RoundRobin" failover="false">
      <member hostName="a" httpPort="81"/><member hostName="b" httpsPort="444"/></loadbalance>`,
    {
      method: '',
      format: 'kept',
      appendsPath: true,
      address: {
        kind: 'urls',
        endpoints: {
          kind: 'load_balance',
          algorithm: 'round_robin',
          failsOver: false,
          endpoints: ['http://a:81', 'https://b:444'].map(url => ({ url, settings: DEFAULT_ENDPOINT_SETTINGS })),
        },
      },
    },
  ],
]

for (const [xml, form] of forms) {
  test(`${xml.replace(/\s+/g, ' ')} becomes plain data`, async () => {
    const { endpoints = [] } = await planOf(call(xml))
    assert.deepEqual(
      endpoints.map(({ form: parsed }) => parsed),
      [form],
    )
  })
}

test('equal endpoints of a sequence are one', async () => {
  const { endpoints = [] } = await planOf([1, 2, 3].map(n => call(`<address uri="http://h/${n % 2}"/>`)).join(''))
  assert.equal(endpoints.length, 2)
})

test('a sequence lists the endpoints that it names, and the destination of <call/>', async () => {
  const { endpoints = [] } = await planOf('<call/><send><endpoint key="one"/></send>')
  assert.deepEqual(
    endpoints.map(({ name, form }) => [name, form === null]),
    [
      ['(destination)', false],
      ['one', true],
    ],
  )
})

test('sequences without endpoints list none', async () => {
  assert.equal((await parseFile(file('<log/>'))).plan!.endpoints, undefined)
})

const NAMESPACE = 'xmlns="http://ws.apache.org/ns/synapse"'
const refusedFiles: readonly (readonly [text: string, expected: string])[] = [
  ['<endpoint name="one"><default/></endpoint>', 'one.xml:1: xmlns: is not that of the sequence language'],
  [`<endpoint ${NAMESPACE}><default/></endpoint>`, 'one.xml:1: endpoint/name: is missing'],
  [`<endpoint ${NAMESPACE} name="two"><default/></endpoint>`, 'one.xml:1: endpoint/name: is not the name of its file'],
  [`<endpoint ${NAMESPACE} name="one"/>`, 'one.xml:1: endpoint: is empty'],
]

for (const [text, expected] of refusedFiles) {
  test(`the file of an endpoint ${text} is refused`, async () => {
    const diagnostics = new Diagnostics()
    assert.equal(await parseEndpointFile('one', 'one.xml', text, diagnostics), undefined)
    const errors = diagnostics.errors.map(formatDiagnostic)
    assert.ok(
      errors.some(error => error.startsWith(expected) || error.replace(/ = \w+/, '').startsWith(expected)),
      errors.join('\n'),
    )
  })
}

const endpointWarnings = async (endpoint: string) =>
  (await parseFile(file(`<send><endpoint>${endpoint}</endpoint></send>`))).warnings

test('WS-Addressing of an endpoint is a warning', async () => {
  const [warning = '', ...others] = await endpointWarnings('<address uri="http://h"><enableAddressing/></address>')
  assert.match(warning, /enableAddressing: has no effect \(no headers of WS-Addressing are added/)
  assert.deepEqual(others, [])
})

test('the name of an endpoint tells nothing of its password', async () => {
  const names = ['one', 'two'].map(async password => {
    const basic = `<basicAuth><username>u</username><password>${password}</password></basicAuth>`
    const plan = await planOf(call(`<http uri-template="http://h"><authentication>${basic}</authentication></http>`))
    return plan.endpoints![0]!.name
  })
  assert.equal(await names[0], await names[1])
})

test('attributes of exported endpoints without an effect here are accepted, with a warning', async () => {
  const inert = 'statistics="disable" trace="disable" encoding="utf-8"'
  const retries = '<retryConfig><disabledErrorCodes/></retryConfig>'
  for (const form of ['http uri-template="http://h/"', 'address uri="http://h/"', 'default']) {
    const [name] = form.split(' ')
    const one = (attributes: string, children: string) => `<${form} ${attributes}>${children}</${name}>`
    assert.deepEqual(await endpointWarnings(one(inert, retries)), [])
    const set = retries.replace('<disabledErrorCodes/>', '<enabledErrorCodes>101503</enabledErrorCodes>')
    assert.equal((await endpointWarnings(one('statistics="enable" encoding="UTF-16"', set))).length, 3)
  }
})

test('no diagnostic and no name of an endpoint shows a secret of its OAuth', async () => {
  const of = (secret: string) => client(`${URL_PAIR.replace('>s<', `>${secret}<`)}`)
  const names = await Promise.all(
    ['hunter2', 'hunter3'].map(async secret => (await planOf(of(secret))).endpoints!.map(({ name }) => name)),
  )
  assert.notDeepEqual(names[0], names[1])
  const errors = await errorsOf(client('<clientSecret>hunter2</clientSecret><tokenUrl>http://h/?hunter2</tokenUrl>'))
  assert.ok(errors.length > 0 && !errors.join().includes('hunter2'), errors.join())
})

test('no diagnostic shows a secret that begins or ends like an expression', async () => {
  for (const secret of ['${hunter2', '{hunter2 ..}', "{'hunter2}", '{hunter2(1)}', `\${hunter2.a}`]) {
    const basic = `<basicAuth><username>u</username><password>${secret}</password></basicAuth>`
    const http = `<http uri-template="http://h/"><authentication>${basic}</authentication></http>`
    const parameter = `<requestParameters><parameter name="p">${secret}</parameter></requestParameters>`
    for (const text of [
      client(URL_PAIR.replace('>s<', `>${secret}<`)),
      client(`${URL_PAIR}${parameter}`),
      `<call><endpoint>${http}</endpoint></call>`,
    ]) {
      const { errors, warnings } = await parseFile(file(text))
      const said = [...errors, ...warnings].join()
      assert.ok(!said.includes('hunter2'), said)
    }
  }
})

test('time-outs of the connection to a token endpoint are warnings', async () => {
  const { warnings } = await parseFile(file(client(`${URL_PAIR}<connectionTimeout>5</connectionTimeout>`)))
  assert.match(warnings.join(), /connectionTimeout: has no effect/)
})
