/** What the parser refuses of mediators that make copies, keep responses and call services. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorsOf, file, parseFile, planOf } from './test-sequences.ts'

const TARGET = '<target><sequence><log/></sequence></target>'
const DONE = '<onComplete expression="json-eval($)"/>'
const CALLOUT = 'serviceURL="http://h/s"'

const refused: readonly (readonly [steps: string, key: string, expected: string])[] = [
  ['<clone/>', 'clone', 'has no target'],
  ['<clone><log/></clone>', 'log', 'is not an element of <clone>'],
  ['<clone><target/></clone>', 'target', 'has nothing to run'],
  ['<clone><target sequence="x"><sequence/></target></clone>', 'sequence', 'is given twice'],
  [`<clone continueParent="maybe">${TARGET}</clone>`, 'clone/continueParent', 'expected one of true, false'],
  [`<clone>${TARGET.repeat(101)}</clone>`, 'clone', 'has more than 100 targets'],
  [`<iterate>${TARGET}</iterate>`, 'iterate/expression', 'is missing'],
  ['<iterate expression="json-eval($.a)"/>', 'iterate', 'has no target'],
  [`<iterate expression="//a">${TARGET}${TARGET}</iterate>`, 'target', 'is repeated'],
  [`<iterate expression="//a" preservePayload="true">${TARGET}</iterate>`, 'iterate/attachPath', 'is missing'],
  [
    `<iterate expression="json-eval($.a)" preservePayload="true" attachPath="//b">${TARGET}</iterate>`,
    'iterate/attachPath = //b',
    'is no path into the payload',
  ],
  ['<aggregate/>', 'aggregate', 'has no <onComplete>'],
  ['<aggregate><onComplete/></aggregate>', 'onComplete/expression', 'is missing'],
  [
    `<aggregate><completeCondition timeout="soon"/>${DONE}</aggregate>`,
    'completeCondition/timeout',
    'expected a number',
  ],
  [
    `<aggregate><completeCondition><messageCount min="3" max="2"/></completeCondition>${DONE}</aggregate>`,
    'messageCount/min',
    'is more than max',
  ],
  [
    `<aggregate><completeCondition><messageCount min="{$.n}"/></completeCondition>${DONE}</aggregate>`,
    'messageCount/min',
    'is not valid XPath',
  ],
  [`<scatter-gather>${TARGET}</scatter-gather>`, 'scatter-gather', 'has no <aggregation>'],
  [
    `<scatter-gather target="Variable"><aggregation expression="json-eval($)"/>${TARGET}</scatter-gather>`,
    'scatter-gather/target-variable',
    'is missing',
  ],
  [
    `<scatter-gather result-content-type="XML"><aggregation expression="//a"/>${TARGET}</scatter-gather>`,
    'scatter-gather/result-enclosing-element',
    'is missing',
  ],
  ['<scatter-gather><aggregation expression="json-eval($)"/></scatter-gather>', 'scatter-gather', 'has no <sequence>'],
  [
    `<scatter-gather><aggregation expression="json-eval($)" until="true"/>${TARGET}</scatter-gather>`,
    'aggregation/until',
    'is an unknown attribute',
  ],
  ['<cache timeout="forever"/>', 'cache/timeout', 'expected a number'],
  ['<cache maxMessageSize="99999999"/>', 'cache/maxMessageSize', 'expected a number up to'],
  ['<cache><protocol><responseCodes>2(</responseCodes></protocol></cache>', 'protocol/responseCodes', ''],
  ['<cache><protocol><ttl>1</ttl></protocol></cache>', 'ttl', 'is not an element of <protocol>'],
  ['<cache><onCacheHit sequence="a"><respond/></onCacheHit></cache>', 'respond', 'is not an element of <onCacheHit>'],
  ['<cache><implementation maxSize="many"/></cache>', 'implementation/maxSize', 'expected a number up to'],
  ['<callout/>', 'callout/serviceURL', 'is missing'],
  ['<callout serviceURL="jms:/q"/>', 'callout/serviceURL', 'must be an http'],
  [`<callout ${CALLOUT}><enableSec/></callout>`, 'enableSec', 'is not an element of <callout>'],
  [`<callout ${CALLOUT}><target xpath="1"/></callout>`, 'target/xpath = 1', 'is no path into the body'],
  ['<opa policy="a"/>', 'opa/serverUrl', 'is missing'],
  ['<scatter-gather><aggregation expression="json-eval($)"/><sequence/></scatter-gather>', 'sequence', 'is empty'],
  [
    `<scatter-gather content-type="XML"><aggregation expression="//a"/>${TARGET}</scatter-gather>`,
    'scatter-gather/result-enclosing-element',
    'is missing',
  ],
  [`<aggregate><correlateOn/>${DONE}</aggregate>`, 'correlateOn/expression', 'is missing'],
  [`<aggregate><correlateOn expression="a["/>${DONE}</aggregate>`, 'correlateOn/expression', 'is not valid XPath'],
  ['<opa serverUrl="http://h"/>', 'opa/policy', 'is missing'],
  ['<opa serverUrl="http://h" policy="a b"/>', 'opa/policy', 'is not the path of a policy'],
  ['<opa serverUrl="http://h" policy="a"><parameter value="x"/></opa>', 'parameter/name', 'is missing'],
]

for (const [steps, key, expected] of refused) {
  test(`${steps.slice(0, 120)} is refused`, async () => {
    const errors = await errorsOf(steps)
    assert.ok(
      errors.some(error => error.startsWith(`one.xml:1: ${key}`) && error.includes(`: ${expected}`)),
      errors.join('\n'),
    )
  })
}

const DIGEST = 'org.wso2.carbon.mediator.cache.digest'
const generator = (name: string) =>
  `<cache><protocol type="HTTP"><hashGenerator>${DIGEST}.${name}</hashGenerator></protocol></cache>`

const NO_GENERATOR =
  'has no effect: method, path, fields and body count ' +
  '(remove it, or name HttpRequestHashGenerator, REQUESTHASHGenerator or DOMHASHGenerator)'

/** [steps, warning; '' for none] */
const WARNED: readonly (readonly [steps: string, warning: string])[] = [
  [`<clone>${TARGET}</clone><aggregate><correlateOn expression="//a"/>${DONE}</aggregate>`, ''],
  [generator('HttpRequestHashGenerator'), ''],
  [generator('DOMHASHGenerator'), ''],
  [`<cache hashGenerator="${DIGEST}.REQUESTHASHGenerator"/>`, ''],
  [generator('MyGenerator'), `hashGenerator: ${NO_GENERATOR}`],
  ['<cache scope="per-mediator" id="a"/>', ''],
  [
    '<cache scope="per-host" id="a"/>',
    'cache/scope: has no effect: each finder of an API has responses of its own (remove it)',
  ],
  ['<cache hashGenerator="org.example.Own"/>', `cache/hashGenerator: ${NO_GENERATOR}`],
]

for (const [steps, warning] of WARNED) {
  test(`${steps} is a warning: ${warning || 'none'}`, async () => {
    const { warnings, errors } = await parseFile(file(steps))
    assert.deepEqual([warnings, errors], [warning === '' ? [] : [`one.xml:1: ${warning}`], []])
  })
}

test('a kept response lives for 5,000 s, and a cache has 1,000 of them, unless it says so', async () => {
  const { steps } = await planOf('<cache/><cache timeout="20"><implementation maxSize="100"/></cache>')
  const limits = steps.map(({ settings }) => {
    const { lifetimeMs, entriesMax } = settings as { readonly lifetimeMs: number; readonly entriesMax: number }
    return [lifetimeMs, entriesMax]
  })
  assert.deepEqual(limits, [
    [5_000_000, 1000],
    [20_000, 100],
  ])
})

test('the canonical callout loads', async () => {
  const content = 's11:Body/child::*[fn:position()=1] | s12:Body/child::*[fn:position()=1]'
  const steps = `<callout serviceURL="http://localhost:9000/services/SimpleStockQuoteService" action="urn:getQuote">
    <source xpath="${content}"/><target xpath="${content}"/></callout>`
  assert.deepEqual(await errorsOf(steps), [])
})

/** [result-target and more, aggregation, variable of the result, text of the expression] */
const SCATTERED: readonly (readonly [attributes: string, aggregation: string, variable: string])[] = [
  ['', '', ''],
  ['result-target="Body"', '', ''],
  ['result-target="Variable" target-variable="v"', '', 'v'],
  ['result-target="servicesResult"', '', 'servicesResult'],
  ['content-type="XML" root-element="all"', `expression="xpath('$body/node()')"`, ''],
]

for (const [attributes, aggregation, variable] of SCATTERED) {
  test(`scatter-gather ${attributes} ${aggregation} has the variable "${variable}"`, async () => {
    const { steps } = await planOf(
      `<scatter-gather ${attributes}><aggregation ${aggregation}/>${TARGET}</scatter-gather>`,
    )
    assert.equal((steps[0]!.settings as { readonly variable: string }).variable, variable)
  })
}

test('what follows a clone up to its aggregate belongs to the clone', async () => {
  const { steps } = await planOf(`<clone>${TARGET}</clone><log/><aggregate>${DONE}</aggregate><respond/>`)
  assert.deepEqual(
    steps.map(({ mediator }) => mediator),
    ['clone', 'respond'],
  )
  const { gathers } = steps[0]!.settings as { readonly gathers: readonly { readonly mediator: string }[] }
  assert.deepEqual(
    gathers.map(({ mediator }) => mediator),
    ['log', 'aggregate'],
  )
})

test('a sequence lists the sequences and endpoints that its targets name', async () => {
  const { calls, endpoints = [] } = await planOf('<clone><target sequence="one"/><target endpoint="two"/></clone>')
  assert.deepEqual([calls, endpoints.map(({ name }) => name)], [['one'], ['(destination)', 'two']])
})
