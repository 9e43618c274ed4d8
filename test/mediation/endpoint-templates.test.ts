/** Templates of endpoints in a home: what they make, and mistakes in them and in their uses. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { type EndpointFiles, loadEndpoints, NO_ENDPOINT_FILES } from '../../src/mediation/endpoint-files.ts'
import { changedSequences, loadSequences } from '../../src/mediation/sequence-files.ts'
import { says, startBackend, startCalls } from '../harness/sequence-calls.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const FOLDER = 'synapse-configs/default'
const NAMESPACE = 'xmlns="http://ws.apache.org/ns/synapse"'
const template = (content: string, name = 'one') => `<template ${NAMESPACE} name="${name}">${content}</template>`
const PLAIN = template('<endpoint name="$name"><address uri="$uri"/></endpoint>')
const use = (inner = '', uri = '') => `<endpoint template="one"${uri === '' ? '' : ` uri="${uri}"`}>${inner}</endpoint>`
const sequence = (steps: string) => `<sequence ${NAMESPACE} name="caller">${steps}</sequence>`
const parameter = (name: string, value: string) => `<parameter name="${name}" value="${value}"/>`

async function filesOf(t: TestContext, files: Readonly<Record<string, string>>): Promise<EndpointFiles> {
  const home = Object.entries(files).map(([name, text]) => [`${FOLDER}/${name}.xml`, text])
  const diagnostics = new Diagnostics()
  const found = await loadEndpoints(temporaryHome(t, Object.fromEntries(home)), NO_ENDPOINT_FILES, diagnostics)
  assert.deepEqual(diagnostics.errors.map(formatDiagnostic), [])
  return found
}

const AGGREGATE = '<aggregate><onComplete expression="json-eval($.from)"/></aggregate>'
const WHOLE = template(`<parameter name="way"/><parameter name="field" defaultValue="of the template"/>
  <endpoint name="$name">
    <http method="$way" uri-template="$uri/{uri.var.it}"><timeout><duration>$ms</duration></timeout></http>
    <property name="X-Field" value="$field" scope="transport"/>
    <property name="X-Kept" expression="fn:concat($ctx:kept, '-$other')" scope="transport"/>
  </endpoint>`)

/** Files, the request flow for a port, and what the backend has got. */
const MADE: readonly (readonly [
  what: string,
  files: (url: string) => Record<string, string>,
  request: (url: string) => string,
  got: readonly string[],
])[] = [
  [
    'an address',
    () => ({ 'templates/any': PLAIN }),
    url => `<call>${use('', `${url}/a`)}</call><respond/>`,
    ['GET /a/x , '],
  ],
  [
    'method, time-out and properties, one with a default',
    () => ({ 'templates/one': WHOLE }),
    url => `<property name="uri.var.it" value="7"/><property name="kept" value="k"/>
      <call>${use(parameter('way', 'put') + parameter('ms', '60000'), `${url}/a`)}</call><respond/>`,
    ['PUT /a/7 of the template, k-$other'],
  ],
  [
    'another value in place of the default, and <send>',
    () => ({ 'templates/one': WHOLE }),
    url =>
      `<send>${use(parameter('way', 'post') + parameter('ms', '') + parameter('field', 'own'), `${url}/a`)}</send>`,
    ['POST /a/ own, -$other'],
  ],
  [
    'an endpoint of a file',
    url => ({
      'templates/one': PLAIN,
      'endpoints/it': `<endpoint ${NAMESPACE} name="it" template="one" uri="${url}/b"/>`,
    }),
    () => '<call><endpoint key="it"/></call><respond/>',
    ['GET /b/x , '],
  ],
  [
    'a member of a group',
    () => ({ 'templates/one': PLAIN }),
    url => `<call><endpoint><failover>${use('', `${url}/b`)}</failover></endpoint></call><respond/>`,
    ['GET /b/x , '],
  ],
  [
    'an address of parameters, one of which begins another one, and both stand before other text',
    () => ({ 'templates/one': template('<endpoint><http uri-template="$uri/$way-$way-to$a.b$way_x"/></endpoint>') }),
    url => `<call>${use(['way', 'way-to', 'a.b'].map(it => parameter(it, it.at(-1)!)).join(''), url)}</call><respond/>`,
    ['GET /y-ob$way_x , '],
  ],
  [
    'a list of recipients',
    () => ({
      'templates/one': template(`<endpoint><recipientlist>
        <endpoint><address uri="$uri/a"/></endpoint><endpoint><address uri="$uri/b"/></endpoint>
      </recipientlist></endpoint>`),
    }),
    url => `<call>${use('', url)}</call>${AGGREGATE}<respond/>`,
    ['GET /a/x , ', 'GET /b/x , '],
  ],
]

for (const [what, files, request, got] of MADE) {
  test(`a template makes ${what}`, async t => {
    const backend = await startBackend(
      t,
      Object.fromEntries(['/a/x', '/a/7', '/a/', '/b/x', '/y-ob$way_x'].map(it => [it, says(200, '{"from":1}')])),
    )
    const url = `http://127.0.0.1:${backend.port}`
    const { ask } = await startCalls(t, { request: request(url) }, backend.port, await filesOf(t, files(url)))
    const [status, body] = await ask()
    assert.deepEqual([status, body], [200, got.length > 1 ? '[1,1]' : '{"from":1}'])
    const field = (head: string, name: string) => new RegExp(`^${name}: (.*)\\r$`, 'im').exec(head)?.[1] ?? ''
    const seen = backend.received.map(
      ({ method, target, head }) => `${method} ${target} ${field(head, 'x-field')}, ${field(head, 'x-kept')}`,
    )
    assert.deepEqual(seen.sort(), got)
  })
}

/** Files of templates, steps that use them, and what is said. */
const WRONG: readonly (readonly [text: string, steps: string, said: RegExp])[] = [
  [
    PLAIN,
    '<call><endpoint template="none"/></call>',
    /caller\.xml:1: endpoint key = none: there is no template of endp/,
  ],
  [
    PLAIN,
    `\n<call>${use()}</call>`,
    /caller\.xml:2: endpoint key = one: leaves out the parameter uri of the template one/,
  ],
  [
    PLAIN,
    `<call>${use('', 'ftp://hunter2')}</call>`,
    /caller\.xml:1: endpoint key = one: makes no endpoint of .*one\.xml:1: address\/uri: must be an http/,
  ],
  [WHOLE, `<call>${use(parameter('ms', '1'), 'http://h')}</call>`, /leaves out the parameter way of the template one/],
  [template('<endpoint/>'), `<call>${use()}</call>`, /template one: .*one\.xml:1: endpoint: is empty/],
  [
    template('<endpoint><recipientlist><endpoint key="it"/></recipientlist></endpoint>'),
    `<clone><target>${use()}</target></clone>`,
    /caller\.xml:1: endpoint key = one: has a template that names it: there is no endpoint of this name/,
  ],
  [
    template('<endpoint><recipientlist><endpoint><default/></endpoint></recipientlist></endpoint>'),
    `<clone><target>${use()}</target></clone>`,
    /caller\.xml:1: endpoint key = one: is a list of recipients, to which only <send> and <call> send/,
  ],
  [template('<endpoint key="x"/>'), '', /one\.xml:1: endpoint\/key: is not supported in a template/],
  [template('<endpoint template="x"/>'), '', /one\.xml:1: endpoint\/template: is not supported in a template/],
  [template('<endpoint><default/></endpoint><endpoint/>'), '', /one\.xml:1: endpoint: is repeated in <template>/],
  [template('<endpoint><default/></endpoint><sequence/>'), '', /one\.xml:1: sequence: is not an element of <template>/],
  [template('<parameter/><endpoint><default/></endpoint>'), '', /one\.xml:1: parameter\/name: is missing/],
  [template('<endpoint><default/></endpoint>').replace(NAMESPACE, ''), '', /xmlns: is not that of the sequence lang/],
  [template('<endpoint><default></endpoint>'), '', /one\.xml:1: not well-formed/],
]

for (const [text, steps, said] of WRONG) {
  test(`${text.replace(` ${NAMESPACE}`, '')}, used by ${steps}, is refused`, async t => {
    const files = { [`${FOLDER}/templates/one.xml`]: text, [`${FOLDER}/sequences/caller.xml`]: sequence(steps) }
    const { errors } = await loadSequences(temporaryHome(t, files))
    const all = errors.map(formatDiagnostic).join('\n')
    assert.match(all, said)
    assert.ok(!all.includes('hunter2'), all)
  })
}

test('a template has the name of its attribute, and two of one name are an error', async t => {
  const files = { [`${FOLDER}/templates/a.xml`]: PLAIN, [`${FOLDER}/templates/b.xml`]: PLAIN }
  const { errors, endpoints } = await loadSequences(temporaryHome(t, files))
  assert.match(errors.map(formatDiagnostic).join(), /b\.xml: template\/name = one: is the name of .*a\.xml as well/)
  assert.deepEqual([...endpoints.templates!.keys()], ['one'])
})

test('a reload names a changed template, and a faulty one keeps what was active', async t => {
  const load = (text: string, active?: Awaited<ReturnType<typeof loadSequences>>) => {
    const caller = sequence(`<call>${use('', 'http://h')}</call>`)
    const files = { [`${FOLDER}/templates/one.xml`]: text, [`${FOLDER}/sequences/caller.xml`]: caller }
    return loadSequences(temporaryHome(t, files), active)
  }
  const first = await load(PLAIN)
  assert.deepEqual(first.errors, [])
  const changed = await load(template('<endpoint><http uri-template="$uri"/></endpoint>'), first)
  assert.deepEqual(changedSequences(first, changed), ['template one'])
  const faulty = await load(template('<endpoint key="x"/>'), changed)
  assert.equal(faulty.errors.length, 1)
  assert.equal(faulty.endpoints.templates!.get('one'), changed.endpoints.templates!.get('one'))
  assert.ok(faulty.files.has('caller'))
})

test('warnings within a template name its file and line, once for all of its uses', async t => {
  const inner = '<timeout><duration>$ms</duration></timeout><enableAddressing/>'
  const inert = `<parameter name="ms"/>\n<endpoint>\n<address uri="$uri" trace="enable">${inner}</address></endpoint>`
  const call = (ms: string) => `<call>${use(parameter('ms', ms), 'http://a.example/')}</call>`
  const home = temporaryHome(t, {
    [`${FOLDER}/templates/one.xml`]: template(inert),
    [`${FOLDER}/sequences/caller.xml`]: sequence(call('10') + call('20')),
  })
  const { errors, warnings } = await loadSequences(home)
  assert.deepEqual(errors.map(formatDiagnostic), [])
  const instead = 'no headers of WS-Addressing are added; remove it, or add them with <header>'
  assert.deepEqual(
    warnings.map(it => formatDiagnostic(it).replace(/^.*templates/, 'templates')),
    [
      'templates/one.xml:3: address/trace: has no effect (remove it)',
      `templates/one.xml:3: enableAddressing: has no effect (${instead})`,
    ],
  )
})
