/** Sequence templates: their files, the values of their parameters, and what a call of them does. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadApis } from '../../src/apis/api-loading.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { loadSequences } from '../../src/mediation/sequence-files.ts'
import { API_OF_BOTH_KINDS as HEAD } from '../apis/api-text.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { causes, file, parseFile, planOf, run, templateFile, testRefusals } from './test-sequences.ts'

const template = (name: string, parameters: string, steps: string, attributes = '') =>
  `<template name="${name}"${attributes}>${parameters}<sequence>${steps}</sequence></template>`
const keep = (expression: string) => `<property name="it" expression="${expression}"/>`
const call = (parameters: string, attributes = '') =>
  `<call-template target="t"${attributes}>${parameters}</call-template>`
const give = (value: string, name = 'p') => `<with-param name="${name}" value="${value}"/>`
const P = '<parameter name="p"/>'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: expressions of the language
/** [what, parameters of the template, its steps, parameters of the call, property `it` afterwards]. */
const VALUES: readonly (readonly [string, string, string, string, string])[] = [
  ['a text', P, keep('$func:p'), give('abc'), 'abc'],
  ['an expression in braces', P, keep('$func:p'), give('{$ctx:given}'), 'x'],
  ['an expression in ${…}', P, keep('$func:p'), give('${properties.synapse.given}'), 'x'],
  ['get-property', P, keep("get-property('func', 'p')"), give('abc'), 'abc'],
  ['params.functionParams', P, keep('${params.functionParams.p}'), give('abc'), 'abc'],
  ['an operation on it', P, keep("concat($func:p, '-', $func:q)"), give('a') + give('b', 'q'), 'a-'],
  ['no value', P, keep("concat('&lt;', $func:p, '>')"), '', '<>'],
  ['the default value', '<parameter name="p" defaultValue="d"/>', keep('$func:p'), '', 'd'],
  ['the default for an empty one', '<parameter name="p" defaultValue="d"/>', keep('$func:p'), give(''), 'd'],
  ['a value in place of the default', '<parameter name="p" defaultValue="d"/>', keep('$func:p'), give('v'), 'v'],
  [
    'an expression in braces, as it was at the call',
    P,
    `<property name="given" value="y"/>${keep('$func:p')}`,
    give('{$ctx:given}'),
    'x',
  ],
  [
    'an expression in double braces, as it is where it is read',
    P,
    `<property name="given" value="y"/>${keep('$func:p')}`,
    give('{{$ctx:given}}'),
    'y',
  ],
]
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: expressions of the language

describe('a template reads', () => {
  for (const [what, parameters, steps, given, expected] of VALUES) {
    test(what, async () => {
      const others = { 'template t': template('t', parameters, steps) }
      const ran = await run(call(given), { properties: { given: 'x' }, others })
      assert.deepEqual(ran.reports, [])
      assert.equal(ran.message.get('default', 'it'), expected)
      assert.equal(ran.message.frame, null)
    })
  }
})

test('a template within a template has parameters of its own', async () => {
  const inner = `<call-template target="u">${give("{concat($func:p, '1')}")}</call-template>`
  const others = {
    'template t': template('t', P, `${inner}${keep("concat($ctx:inner, '|', $func:p)")}`),
    'template u': template('u', P, '<property name="inner" expression="$func:p"/>'),
  }
  const { message } = await run(call(give('a')), { others })
  assert.equal(message.get('default', 'it'), 'a1|a')
})

test('double braces read the parameters of the caller', async () => {
  const others = {
    'template t': template('t', P, `<call-template target="u">${give('{{$func:p}}')}</call-template>`),
    'template u': template('u', P, keep('$func:p')),
  }
  const { message } = await run(call(give('a')), { others })
  assert.equal(message.get('default', 'it'), 'a')
})

test('a sequence that a template runs reads its parameters', async () => {
  const others = { 'template t': template('t', P, '<sequence key="s"/>'), s: keep('$func:p') }
  const { message } = await run(call(give('a')), { others })
  assert.equal(message.get('default', 'it'), 'a')
})

test('a template that runs itself ends with the limit of sequences', async () => {
  const others = { 'template t': template('t', P, call(give('{$func:p}'))) }
  const ran = await run(call(give('a')), { others })
  assert.equal(ran.outcome, 'failed')
  assert.match(String(causes(ran)[0]), /entered more than 100 sequences/)
})

test('a template that responds ends the sequence', async () => {
  const others = { 'template t': template('t', '', '<respond/>') }
  const ran = await run(`${call('')}${keep("'on'")}`, { others })
  assert.equal(ran.outcome, 'responded')
  assert.equal(ran.message.get('default', 'it'), undefined)
})

const FAILS = '<throwError errorMessage="no" type="MINE"/>'
const HANDLES = `${keep("concat(get-property('ERROR_CODE'), $func:p)")}<respond/>`

/** [what, attributes of the template, attributes of the call]. */
const HANDLERS = [
  ['of the call', '', ' onError="handler"'],
  ['of the template', ' onError="handler"', ''],
  ['of the template before that of the call', ' onError="handler"', ' onError="other"'],
] as const
for (const [what, ofTemplate, ofCall] of HANDLERS) {
  test(`the onError ${what} runs for what fails in a template`, async () => {
    const others = { 'template t': template('t', P, FAILS, ofTemplate), handler: HANDLES, other: keep("'other'") }
    const ran = await run(call(give('!'), ofCall), { others })
    assert.equal(ran.outcome, 'responded')
    assert.equal(ran.message.get('default', 'it'), 'MINE!')
  })
}

test('an empty mandatory parameter is a fault that names it', async () => {
  const others = { 'template t': template('t', '<parameter name="p" isMandatory="true"/>', keep('$func:p')) }
  const ran = await run(call(give('{$ctx:none}')), { others })
  assert.equal(ran.outcome, 'failed')
  assert.deepEqual(causes(ran), ['one.xml:1: the mandatory parameter p of the template t is empty'])
})

const NEEDS = [
  ['a constant', give('a'), 'heads'],
  ['a header field', give('{$trp:Accept}'), 'heads'],
  ['the body', give('{json-eval($.a)}'), 'worker'],
  ['the body in double braces', give('{{json-eval($.a)}}'), 'worker'],
] as const
for (const [what, given, expected] of NEEDS) {
  test(`a call with ${what} needs: ${expected}`, async () => {
    const plans = [await planOf(call(given)), await planOf(template('t', P, keep('$func:p')), 'template t')]
    assert.equal(
      needsOf(['one'], name => plans.find(plan => plan.name === name)),
      expected,
    )
  })
}

testRefusals([
  ['<call-template/>', 'call-template/target: is missing'],
  ['<call-template target="t"><with-param value="1"/></call-template>', 'with-param/name: is missing'],
  ['<call-template target="t"><with-param name="a"/></call-template>', 'with-param/value: is missing'],
  [call(give('1') + give('2')), 'with-param/name = p: is repeated'],
  [call(give('{a[}')), 'with-param/value = a[: is not valid XPath'],
  [call('<parameter name="a"/>'), 'parameter: is not an element of <call-template>'],
  [
    '<enrich><source type="inline">a</source><target xpath="$func:p"/></enrich>',
    'target/xpath = $func:p: is a parameter of a template',
  ],
])

/** [what, text of the template, beginning of its first diagnostic]. */
const FILES = [
  ['without a name', template('', P, ''), 'error template/name: is missing'],
  ['without a sequence', '<template name="t"/>', 'error template: has no <sequence>'],
  ['of an endpoint', '<template name="t"><endpoint/></template>', 'error endpoint: makes this a template of endpoints'],
  ['with a parameter without a name', template('t', '<parameter/>', ''), 'error parameter/name: is missing'],
  ['with a parameter twice', template('t', P + P, ''), 'error parameter/name = p: is repeated'],
  [
    'with an unknown attribute',
    template('t', '<parameter name="p" default="1"/>', ''),
    'error parameter/default: is an unknown',
  ],
  [
    'that reads an unknown parameter',
    template('t', P, keep('$func:q')),
    'warning property/expression: reads q, which is no parameter',
  ],
] as const
for (const [what, text, expected] of FILES) {
  test(`a template ${what} is told`, async () => {
    const { errors, warnings } = await parseFile(templateFile(text), 'template t')
    const said = [...errors.map(it => `error ${it}`), ...warnings.map(it => `warning ${it}`)]
    assert.equal(said[0]?.replace('template t.xml:1: ', '').slice(0, expected.length), expected)
  })
}

const FOLDER = 'synapse-configs/default'
const FAR = `repository/deployment/server/${FOLDER}`
const MANDATORY = '<parameter name="p" isMandatory="true"/>'

/** [what, files of the home, diagnostics]. */
const HOMES: readonly (readonly [string, Readonly<Record<string, string>>, readonly string[]])[] = [
  ['a template of the folder templates', { [`${FOLDER}/templates/x.xml`]: templateFile(template('t', P, '')) }, []],
  [
    'a template of the folder of the reference platform',
    { [`${FAR}/templates/t.xml`]: templateFile(template('t', P, '')) },
    [],
  ],
  ['a template among the sequences', { [`${FOLDER}/sequences/t.xml`]: templateFile(template('t', P, '')) }, []],
  ['no template', {}, ['one.xml:1: template target = t: there is no template of this name (add templates/t.xml)']],
  [
    'a faulty template',
    { [`${FOLDER}/templates/t.xml`]: templateFile(template('t', P, '<fly/>')) },
    [
      't.xml:1: fly: is not a mediator',
      'one.xml:1: template target = t: the file of this template is faulty (correct t.xml)',
    ],
  ],
  [
    'a sequence in the folder of templates',
    { [`${FOLDER}/templates/t.xml`]: file('', 't') },
    [
      't.xml:1: expected the element <template>',
      'one.xml:1: template target = t: the file of this template is faulty (correct t.xml)',
    ],
  ],
  [
    'a template with a further mandatory parameter',
    { [`${FOLDER}/templates/t.xml`]: templateFile(template('t', P + MANDATORY.replace('"p"', '"q"'), '')) },
    ['one.xml:1: call-template = t: leaves out the mandatory parameter q (add <with-param name="q" value="…"/>)'],
  ],
  [
    'a template without the parameter',
    { [`${FOLDER}/templates/t.xml`]: templateFile(template('t', '', '')) },
    [
      'one.xml:1: with-param/name = p: is no parameter of the template t, so that it has no effect (its parameters: none)',
    ],
  ],
]
for (const [what, files, expected] of HOMES) {
  test(`a sequence of the home calls ${what}`, async t => {
    const home = temporaryHome(t, { [`${FOLDER}/sequences/one.xml`]: file(call(give('a'))), ...files })
    const { errors, warnings } = await loadSequences(home)
    const said = [...errors, ...warnings].map(it => formatDiagnostic(it).replace(/^[^:]*\//, ''))
    assert.equal(said.length, expected.length, said.join('\n'))
    for (const [at, each] of said.entries()) assert.equal(each.slice(0, expected[at]!.length), expected[at])
  })
}

/** [what, further files of the project, files of the home, diagnostics]. */
const PROJECTS: readonly (readonly [
  string,
  Readonly<Record<string, string>>,
  Readonly<Record<string, string>>,
  string,
])[] = [
  ['a template of the project', { 'Sequences/t.xml': templateFile(template('t', P, '')) }, {}, ''],
  ['a template beside it', { 'Sequences/in-sequence/t.xml': templateFile(template('t', P, '')) }, {}, ''],
  ['a template of the home', {}, { [`${FOLDER}/templates/t.xml`]: templateFile(template('t', P, '')) }, ''],
  ['no template', {}, {}, 'template target = "t": there is no template of this name'],
  [
    'one that needs more',
    { 'Sequences/t.xml': templateFile(template('t', P + MANDATORY.replace('"p"', '"q"'), '')) },
    {},
    'call-template = t: leaves out the mandatory parameter q',
  ],
  [
    'one that needs less',
    { 'Sequences/t.xml': templateFile(template('t', '', '')) },
    {},
    'with-param/name = p: is no parameter of the template t',
  ],
]
for (const [what, files, ofHome, expected] of PROJECTS) {
  test(`a sequence of a project calls ${what}`, async t => {
    const own = { 'api.yaml': HEAD, 'Sequences/in-sequence/one.xml': file(call(give('a'))), ...files }
    const inProject = Object.fromEntries(Object.entries(own).map(([path, text]) => [`apis/A/${path}`, text]))
    const home = temporaryHome(t, { 'deployment.toml': '', ...inProject, ...ofHome })
    const { files: sequences } = await loadSequences(home)
    const { configuration } = loadConfiguration(home, [])
    const { apis, errors, warnings } = await loadApis(
      new ApiProjects(home),
      configuration,
      true,
      new Map(),
      undefined,
      sequences,
    )
    const said = [...errors, ...warnings].map(it => formatDiagnostic(it))
    assert.equal(said.length, expected === '' ? 0 : 1, said.join('\n'))
    if (expected !== '') assert.match(said[0]!, new RegExp(RegExp.escape(expected)))
    if (expected === '') assert.deepEqual(apis[0]!.mediation!.extensions.request, ['one'])
  })
}
