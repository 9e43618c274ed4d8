/** Errors in sequence files, with file, line, field and hint. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MEDIATORS } from '../../src/mediation/mediators/list.ts'
import { errorsOf, file, parseFile } from './test-sequences.ts'

const KNOWN = MEDIATORS.map(({ name }) => name)
const NS = 'http://ws.apache.org/ns/synapse'

/** Description, text of the file, and its first error. */
const FILES: readonly (readonly [string, string, string])[] = [
  ['is empty', '', 'one.xml:1: not well-formed'],
  ['is not well-formed', `<sequence xmlns="${NS}" name="one">\n<send>\n</sequence>`, 'one.xml:2: not well-formed'],
  [
    'has another root',
    `<proxy xmlns="${NS}"/>`,
    'one.xml:1: expected the element <sequence> (put all other elements inside it)',
  ],
  [
    'has no namespace',
    '<sequence name="one"/>',
    `one.xml:1: xmlns: is not that of the sequence language (add xmlns="${NS}")`,
  ],
  ['has no name', `<sequence xmlns="${NS}"/>`, 'one.xml:1: sequence/name: is missing (add it)'],
  [
    'has the name of another file',
    `<sequence xmlns="${NS}" name="two"/>`,
    'one.xml:1: sequence/name = two: is not the name of its file, one (give it the name of the file)',
  ],
  [
    'has unknown attributes',
    file('').replace('name=', 'onErr="x" name='),
    'one.xml:1: sequence/onErr: is an unknown attribute (known attributes are name, onError, trace, statistics)',
  ],
  ['contains text', file('text'), 'one.xml:1: sequence: contains text, which has no effect (remove the text)'],
  [
    'has a document type',
    `<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "c">]>\n${file('')}`,
    'one.xml:2: a document type is not allowed (remove <!DOCTYPE)',
  ],
  ['has an unknown entity', file('<log separator="&b;"/>'), 'one.xml:1: not well-formed'],
]

for (const [what, text, said] of FILES) {
  test(`a file that ${what} is refused`, async () => {
    const { plan, errors } = await parseFile(text)
    assert.equal(plan, undefined)
    assert.equal(errors[0]?.slice(0, said.length), said)
  })
}

/** Steps in line 2, and their errors. */
const STEPS: readonly (readonly [string, ...string[]])[] = [
  ['<propertyy name="a" value="1"/>', 'propertyy: is not a mediator (<property>?)'],
  ['<payloadfactory/>', 'payloadfactory: is not a mediator (<payloadFactory>?)'],
  ['<foo/>', `foo: is not a mediator (known mediators are ${KNOWN.join(', ')})`],
  ['<am:log/>', `am:log: is not a mediator (mediators are in the namespace ${NS})`],
  ['<log xmlns=""/>', `log: is not a mediator (mediators are in the namespace ${NS})`],
  // Mediators of the reference platform that are absent say what takes their place.
  ['<endpoint key="a"/>', 'endpoint: is not supported (put it within <call> or <send>)'],
  ['<xslt key="a"/>', 'xslt: is not supported (use <payloadFactory>, <enrich>, or <script>)'],
  ['<dblookup/>', 'dblookup: is not supported (ask a service with <call>)'],
  ['<log leve="full"/>', 'log/leve: is an unknown attribute (level?)'],
  ['<drop a="1"/>', 'drop/a: is an unknown attribute (it has none)'],
  ['<drop>text</drop>', 'drop: contains text, which has no effect (remove the text)'],
  ['<drop><log/></drop>', 'log: is not an element of <drop> (it has none)'],
  ['<drop am:level="full"/>', 'drop/am:level: is an unknown attribute (it has none)'],
  [
    '<rewrite><rule/></rewrite>',
    'rule: is not an element of <rewrite> (write <rewriterule>)',
    'rule/action: is missing',
  ],
  ['<send><log/></send>', 'log: is not an element of <send>'],
  ['<sequence/>', 'sequence/key: is missing (add it)'],
  ['<sequence key="{$ctx}"/>', 'sequence/key = $ctx: there is no variable $ctx'],
  ['<in><foo/></in>', 'foo: is not a mediator'],
  ['<out><foo/></out>', 'foo: is not a mediator'],
]

for (const [step, ...said] of STEPS) {
  test(`${step} is refused`, async () => {
    const errors = await errorsOf(`\n${step}`)
    assert.equal(errors.length, said.length)
    for (const [at, expected] of said.entries()) {
      assert.equal(errors[at]!.slice(0, 11 + expected.length), `one.xml:2: ${expected}`)
    }
  })
}

test('every error of a file is reported with its line', async () => {
  const errors = await errorsOf('\n<foo/>\n<log level="x"/>\n<filter xpath="true()"><then>\n<foo/></then></filter>')
  assert.deepEqual(
    errors.map(fault => fault.split(' ')[0]),
    ['one.xml:2:', 'one.xml:3:', 'one.xml:5:'],
  )
})

test('comments, white space and descriptions have no effect', async () => {
  const { plan, errors } = await parseFile(file('\n <!-- a < b & c -->\n <log description="says hello"/>\n'))
  assert.deepEqual(errors, [])
  assert.deepEqual(
    plan!.steps.map(({ mediator, line }) => [mediator, line]),
    [['log', 3]],
  )
})

test('an unreachable mediator is a warning', async () => {
  const { warnings } = await parseFile(file('<respond/>\n<drop/>'))
  assert.deepEqual(warnings, ['one.xml:2: drop: is unreachable after <respond> (remove it)'])
})

test('files are limited in bytes, elements and depth', async () => {
  const nested = (depth: number) => '<in>'.repeat(depth) + '</in>'.repeat(depth)
  assert.deepEqual(await errorsOf(nested(99)), [])
  assert.deepEqual(await errorsOf(nested(100)), ['one.xml:1: in: is more than 100 elements deep (nest less)'])
  assert.deepEqual(await errorsOf(nested(9000)), ['one.xml:1: in: is more than 100 elements deep (nest less)'])
  assert.deepEqual(await errorsOf('<drop/>'.repeat(10_000)), ['one.xml: has more than 10000 elements (divide it)'])
  assert.deepEqual(await errorsOf(' '.repeat(1024 * 1024)), ['one.xml: has more than 1048576 bytes (divide it)'])
})

test('the plan names the sequences that it runs', async () => {
  const steps = '<sequence key="a"/><filter xpath="1"><then sequence="b"/><else><sequence key="a"/></else></filter>'
  assert.deepEqual((await parseFile(file(steps))).plan!.calls, ['a', 'b'])
})

test('onError names a sequence that the sequence runs', async () => {
  const { plan, warnings } = await parseFile(file('').replace('name=', 'onError="fault" name='))
  assert.deepEqual([plan!.onError, plan!.calls, warnings], ['fault', ['fault'], []])
})

test('attributes of exported sequences without effect are warnings', async () => {
  const exported = file('').replace('name=', 'trace="disable" statistics="enable" name=')
  const { plan, warnings } = await parseFile(exported)
  assert.ok(plan)
  assert.deepEqual(warnings, ['one.xml:1: sequence/statistics: has no effect (remove it)'])
})

test('a variable that only an import tool replaces is a warning, with what reads the environment', async () => {
  const steps = [
    `<header name="X-Key" value="\${ENV_KEY}" scope="transport"/>`,
    `<log level="custom"><property name="k" value="at \${ENV_KEY}"/></log>`,
    `<payloadFactory media-type="json"><format>{"a": "\${vars.A}"}</format></payloadFactory>`,
    `<property name="p" value="$ {A} \${a} $A"/>`,
  ]
  const { warnings } = await parseFile(file(steps.join('\n')))
  const hint = `write expression="get-property('env', 'ENV_KEY')"`
  assert.deepEqual(warnings, [
    `one.xml:1: header/value: holds \${ENV_KEY}, which stays as it is (${hint})`,
    `one.xml:2: property/value: holds \${ENV_KEY}, which stays as it is (${hint})`,
  ])
})
