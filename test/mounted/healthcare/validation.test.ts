import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, readJson } from '../../../src/mounted/healthcare/json-text.ts'
import { hasErrors, type Issue } from '../../../src/mounted/healthcare/outcome.ts'
import { situationOfResource } from '../../../src/mounted/healthcare/situations.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { fullService, NARRATIVE, serviceWith } from './service-example.ts'

/** `code expression` of each error. */
function errorsOf(resource: unknown): readonly string[] {
  return validateResource(resource, 'HealthcareService')
    .filter(({ severity }) => severity === 'error')
    .map(({ code, expression }) => `${code} ${expression?.replace(/^HealthcareService\.?/, '')}`)
}

function json(text: string): JsonObject {
  return readJson(text) as JsonObject
}

/** Elements of a service, and the errors that they cause: issue code and path below HealthcareService. */
const FAULTS: readonly (readonly [title: string, elements: string, errors: readonly string[]])[] = [
  ['an unknown element', '{"colour":"red"}', ['structure colour']],
  ['an element of STU3', '{"programName":["x"]}', ['structure programName']],
  ['an element of R5', '{"offeredIn":[{"reference":"HealthcareService/1"}]}', ['structure offeredIn']],
  ['another element of R5', '{"contact":[{}],"availability":[{}]}', ['structure contact', 'structure availability']],
  ['comments of DSTU2', '{"fhir_comments":["x"]}', ['structure fhir_comments']],
  ['an element of Meta that a server adds', '{"meta":{"project":"x"}}', ['structure meta.project']],
  ['a member __proto__', '{"__proto__":{"a":1}}', ['structure __proto__']],
  ['a member constructor', '{"constructor":1,"toString":2}', ['structure constructor', 'structure toString']],
  ['extensions beside an object', '{"_providedBy":{"id":"a"}}', ['structure _providedBy']],
  [
    'extensions beside an id',
    '{"identifier":[{"id":"a","_id":{"id":"x"},"value":"1"}]}',
    ['structure identifier[0]._id'],
  ],
  ['a name that needs backticks', '{"a b":1}', ['structure `a b`']],
  ['a string for a boolean', '{"active":"true"}', ['structure active']],
  ['a number for a string', '{"name":1}', ['structure name']],
  ['an array for a single element', '{"name":["x"]}', ['structure name']],
  ['a single object for a list', '{"identifier":{"value":"x"}}', ['structure identifier']],
  ['a string for an object', '{"providedBy":"Organization/1"}', ['structure providedBy']],
  ['an object for a string', '{"name":{"a":1}}', ['structure name']],
  ['null', '{"name":null}', ['structure name']],
  ['null in a list of objects', '{"identifier":[null]}', ['structure identifier[0]']],
  [
    'null without an extension beside it',
    '{"availableTime":[{"daysOfWeek":["mon",null]}]}',
    ['structure availableTime[0].daysOfWeek[1]'],
  ],
  ['an empty object', '{"providedBy":{}}', ['structure providedBy']],
  ['an empty list', '{"identifier":[]}', ['structure identifier']],
  ['an empty string', '{"name":""}', ['structure name']],
  ['a string of white space', '{"name":" \\t"}', ['value name']],
  ['a bad time', '{"availableTime":[{"availableStartTime":"8:30"}]}', ['value availableTime[0].availableStartTime']],
  ['a bad instant', '{"meta":{"lastUpdated":"2024-01-01"}}', ['value meta.lastUpdated']],
  ['a bad uri', '{"implicitRules":"a b"}', ['value implicitRules']],
  ['a bad code', '{"language":" en"}', ['value language']],
  ['a bad id', '{"id":"a b"}', ['value id']],
  [
    'the 30th of February',
    '{"notAvailable":[{"description":"x","during":{"start":"2024-02-30"}}]}',
    ['value notAvailable[0].during.start'],
  ],
  ['a missing description', '{"notAvailable":[{"during":{"start":"2024"}}]}', ['required notAvailable[0].description']],
  ['rank 0', '{"telecom":[{"rank":0}]}', ['value telecom[0].rank']],
  ['a rank with a fraction', '{"telecom":[{"rank":1.0}]}', ['value telecom[0].rank']],
  ['a bad day', '{"availableTime":[{"daysOfWeek":["mon","monday"]}]}', ['code-invalid availableTime[0].daysOfWeek[1]']],
  ['a bad telecom.system', '{"telecom":[{"system":"telex","value":"1"}]}', ['code-invalid telecom[0].system']],
  ['a bad telecom.use', '{"telecom":[{"use":"holiday"}]}', ['code-invalid telecom[0].use']],
  ['a bad identifier.use', '{"identifier":[{"use":"best"}]}', ['code-invalid identifier[0].use']],
  ['a bad content type', '{"photo":{"contentType":"png"}}', ['code-invalid photo.contentType']],
  [
    'a bad narrative status',
    `{"text":{"status":"made","div":${JSON.stringify(NARRATIVE.div)}}}`,
    ['code-invalid text.status'],
  ],
  [
    'a bad comparator',
    '{"extension":[{"url":"u","valueQuantity":{"comparator":"=","value":1}}]}',
    ['code-invalid extension[0].value.comparator'],
  ],
  [
    'bad codes of an address',
    '{"extension":[{"url":"u","valueAddress":{"use":"x","type":"y"}}]}',
    ['code-invalid extension[0].value.use', 'code-invalid extension[0].value.type'],
  ],
  [
    'a bad use of a name',
    '{"extension":[{"url":"u","valueHumanName":{"use":"x"}}]}',
    ['code-invalid extension[0].value.use'],
  ],
  [
    'a currency that is no code of ISO 4217',
    '{"extension":[{"url":"u","valueMoney":{"currency":"euro"}}]}',
    ['code-invalid extension[0].value.currency'],
  ],
  ['bad base64', '{"photo":{"contentType":"image/png","data":"A"}}', ['value photo.data']],
  ['an extension without url', '{"extension":[{"valueString":"x"}]}', ['required extension[0].url']],
  ['an extension with neither value nor extension (ext-1)', '{"extension":[{"url":"u"}]}', ['invariant extension[0]']],
  [
    'an extension with value and extension (ext-1)',
    '{"extension":[{"url":"u","valueString":"x","extension":[{"url":"v","valueString":"y"}]}]}',
    ['invariant extension[0]'],
  ],
  [
    'two values of one extension',
    '{"extension":[{"url":"u","valueString":"x","valueCode":"y"}]}',
    ['structure extension[0].value'],
  ],
  [
    'a value of a type that no extension has',
    '{"extension":[{"url":"u","valueNarrative":{"status":"empty"}}]}',
    ['structure extension[0].valueNarrative'],
  ],
  ['an element with only an id (ele-1)', '{"providedBy":{"id":"a"}}', ['invariant providedBy']],
  ['a primitive with only an id (ele-1)', '{"_name":{"id":"a"}}', ['invariant name']],
  ['an id of an element that is no id', '{"identifier":[{"id":"a b","value":"1"}]}', ['value identifier[0].id']],
  [
    'two elements with one id',
    '{"identifier":[{"id":"a","value":"1"},{"id":"a","value":"2"}]}',
    ['invariant identifier[1].id'],
  ],
  [
    'arrays of values and extensions of different lengths',
    '{"availableTime":[{"daysOfWeek":["mon"],"_daysOfWeek":[{"id":"a"},{"extension":[{"url":"u","valueCode":"x"}]}]}]}',
    ['structure availableTime[0].daysOfWeek'],
  ],
  [
    'null in both arrays',
    '{"availableTime":[{"daysOfWeek":[null],"_daysOfWeek":[null]}]}',
    ['structure availableTime[0].daysOfWeek[0]'],
  ],
  [
    'a contained resource in a contained one (dom-2)',
    '{"contained":[{"resourceType":"Location","id":"a","contained":[{"resourceType":"Location","id":"b"}]}],"location":[{"reference":"#a"}]}',
    ['invariant contained[0]'],
  ],
  [
    'a contained resource that nothing refers to (dom-3)',
    '{"contained":[{"resourceType":"Location","id":"a"}]}',
    ['invariant contained[0]'],
  ],
  [
    'a contained resource without id (dom-3)',
    '{"contained":[{"resourceType":"Location","name":"x"}]}',
    ['invariant contained[0]'],
  ],
  [
    'a contained resource with a version (dom-4)',
    '{"contained":[{"resourceType":"Location","id":"a","meta":{"versionId":"1"}}],"location":[{"reference":"#a"}]}',
    ['invariant contained[0]'],
  ],
  [
    'a contained resource with a time (dom-4)',
    '{"contained":[{"resourceType":"Location","id":"a","meta":{"lastUpdated":"2024-01-01T00:00:00Z"}}],"location":[{"reference":"#a"}]}',
    ['invariant contained[0]'],
  ],
  [
    'a contained resource with a security label (dom-5)',
    '{"contained":[{"resourceType":"Location","id":"a","meta":{"security":[{"code":"R"}]}}],"location":[{"reference":"#a"}]}',
    ['invariant contained[0]'],
  ],
  [
    'a contained resource without type',
    '{"contained":[{"id":"a"}],"location":[{"reference":"#a"}]}',
    ['required contained[0].resourceType'],
  ],
  [
    'a contained resource of an unknown type',
    '{"contained":[{"resourceType":"Robot","id":"a"}],"location":[{"reference":"#a"}]}',
    ['structure contained[0].resourceType', 'structure location[0].reference'],
  ],
  [
    'a fault in a contained resource',
    '{"contained":[{"resourceType":"Location","id":"a","status":"open","x":1}],"location":[{"reference":"#a"}]}',
    ['code-invalid contained[0].status', 'structure contained[0].x'],
  ],
  [
    'a contained resource of a type that the reference may not have',
    '{"contained":[{"resourceType":"Endpoint","id":"a","status":"active","connectionType":{"code":"x"},"payloadType":[{"text":"x"}],"address":"http://a"}],"location":[{"reference":"#a"}]}',
    ['structure location[0].reference'],
  ],
  ['a local reference to nothing (ref-1)', '{"location":[{"reference":"#a"}]}', ['invariant location[0].reference']],
  ['# alone in the resource itself (ref-1)', '{"location":[{"reference":"#"}]}', ['invariant location[0].reference']],
  [
    'a period that ends before its start (per-1)',
    '{"notAvailable":[{"description":"x","during":{"start":"2024-02-02","end":"2024-02-01"}}]}',
    ['invariant notAvailable[0].during'],
  ],
  [
    'a period with partial dates that ends before its start (per-1)',
    '{"notAvailable":[{"description":"x","during":{"start":"2024-03","end":"2024-02-29"}}]}',
    ['invariant notAvailable[0].during'],
  ],
  [
    'a period with zones that ends before its start (per-1)',
    '{"notAvailable":[{"description":"x","during":{"start":"2024-02-02T10:00:00Z","end":"2024-02-02T11:00:00+02:00"}}]}',
    ['invariant notAvailable[0].during'],
  ],
  ['a telecom value without system (cpt-2)', '{"telecom":[{"value":"1"}]}', ['invariant telecom[0]']],
  ['data without content type (att-1)', '{"photo":{"data":"AAAA"}}', ['invariant photo']],
  [
    'a reference to a type that is not allowed',
    '{"providedBy":{"reference":"Patient/1"}}',
    ['structure providedBy.reference'],
  ],
  [
    'a type of reference that is not allowed',
    '{"providedBy":{"type":"Patient","display":"x"}}',
    ['structure providedBy.reference'],
  ],
  [
    'type and reference that differ',
    '{"extension":[{"url":"u","valueReference":{"reference":"Patient/1","type":"Group"}}]}',
    ['invariant extension[0].value.type'],
  ],
  [
    'a narrative with a script (txt-1)',
    '{"text":{"status":"generated","div":"<div xmlns=\\"http://www.w3.org/1999/xhtml\\">a<script>x</script></div>"}}',
    ['invariant text.div'],
  ],
  [
    'a narrative without text (txt-2)',
    '{"text":{"status":"generated","div":"<div xmlns=\\"http://www.w3.org/1999/xhtml\\"> <br/></div>"}}',
    ['invariant text.div'],
  ],
  ['a narrative without div', '{"text":{"status":"empty"}}', ['required text.div']],
  [
    'too many values of one kind of fault',
    '{"active":1,"name":2,"comment":3}',
    ['structure active', 'structure name', 'structure comment'],
  ],
]

for (const [title, elements, errors] of FAULTS) {
  test(`${title} is refused`, () => {
    assert.deepEqual(errorsOf(serviceWith(json(elements))).toSorted(), errors.toSorted())
  })
}

/** Values of an extension that break one rule each; the rule, and what meets it. */
const RULES: readonly (readonly [key: string, type: string, broken: string, met: string])[] = [
  ['qty-3', 'Quantity', '{"value":1,"code":"mg"}', '{"value":1,"code":"mg","system":"http://unitsofmeasure.org"}'],
  ['sqty-1', 'Range', '{"low":{"value":1,"comparator":"<"}}', '{"low":{"value":1}}'],
  ['rng-2', 'Range', '{"low":{"value":2},"high":{"value":1.5}}', '{"low":{"value":1.5},"high":{"value":1.50}}'],
  ['rat-1', 'Ratio', '{"numerator":{"value":1}}', '{"numerator":{"value":1},"denominator":{"value":2}}'],
  ['rat-1', 'Ratio', '{"id":"x"}', '{"extension":[{"url":"u","valueString":"x"}]}'],
  ['age-1', 'Age', '{"value":1}', '{"value":1,"code":"a","system":"http://unitsofmeasure.org"}'],
  ['age-1', 'Age', '{"value":-1,"code":"a","system":"http://unitsofmeasure.org"}', '{"unit":"years"}'],
  ['age-1', 'Age', '{"value":1,"code":"a","system":"urn:x"}', '{"code":"a","system":"http://unitsofmeasure.org"}'],
  [
    'cnt-3',
    'Count',
    '{"value":1.5,"code":"1","system":"http://unitsofmeasure.org"}',
    '{"value":2,"code":"1","system":"http://unitsofmeasure.org"}',
  ],
  ['dis-1', 'Distance', '{"value":1}', '{"value":1,"code":"m","system":"http://unitsofmeasure.org"}'],
  [
    'drt-1',
    'Duration',
    '{"code":"h","system":"http://unitsofmeasure.org"}',
    '{"value":1,"code":"h","system":"http://unitsofmeasure.org"}',
  ],
  ['exp-1', 'Expression', '{"language":"text/cql"}', '{"language":"text/cql","expression":"x"}'],
  [
    'drq-1',
    'DataRequirement',
    '{"type":"Patient","codeFilter":[{"path":"a","searchParam":"b"}]}',
    '{"type":"Patient","codeFilter":[{"path":"a"}]}',
  ],
  [
    'drq-2',
    'DataRequirement',
    '{"type":"Patient","dateFilter":[{"valueDateTime":"2024"}]}',
    '{"type":"Patient","dateFilter":[{"searchParam":"a"}]}',
  ],
  [
    'trd-1',
    'TriggerDefinition',
    '{"type":"data-added","data":[{"type":"Patient"}],"timingDate":"2024"}',
    '{"type":"data-added","data":[{"type":"Patient"}]}',
  ],
  [
    'trd-2',
    'TriggerDefinition',
    '{"type":"named-event","name":"x","condition":{"language":"a","expression":"b"}}',
    '{"type":"named-event","name":"x"}',
  ],
  ['trd-3', 'TriggerDefinition', '{"type":"named-event"}', '{"type":"periodic","timingDate":"2024"}'],
  ['tim-1', 'Timing', '{"repeat":{"duration":1}}', '{"repeat":{"duration":1,"durationUnit":"h"}}'],
  ['tim-2', 'Timing', '{"repeat":{"period":1}}', '{"repeat":{"period":1,"periodUnit":"d"}}'],
  ['tim-4', 'Timing', '{"repeat":{"duration":-1,"durationUnit":"h"}}', '{"repeat":{"duration":0,"durationUnit":"h"}}'],
  ['tim-5', 'Timing', '{"repeat":{"period":-1,"periodUnit":"h"}}', '{"repeat":{"period":0.5,"periodUnit":"h"}}'],
  ['tim-6', 'Timing', '{"repeat":{"periodMax":1}}', '{"repeat":{"periodMax":2,"period":1,"periodUnit":"d"}}'],
  ['tim-7', 'Timing', '{"repeat":{"durationMax":1}}', '{"repeat":{"durationMax":2,"duration":1,"durationUnit":"d"}}'],
  ['tim-8', 'Timing', '{"repeat":{"countMax":2}}', '{"repeat":{"countMax":2,"count":1}}'],
  ['tim-9', 'Timing', '{"repeat":{"offset":5,"when":["C"]}}', '{"repeat":{"offset":5,"when":["HS"]}}'],
  ['tim-10', 'Timing', '{"repeat":{"timeOfDay":["08:00:00"],"when":["HS"]}}', '{"repeat":{"timeOfDay":["08:00:00"]}}'],
]

for (const [key, type, broken, met] of RULES) {
  test(`${key} holds for ${type}: ${broken}`, () => {
    const issuesOf = (value: string): readonly Issue[] =>
      validateResource(serviceWith({ extension: [{ url: 'urn:x', [`value${type}`]: json(value) }] }))
    assert.ok(
      issuesOf(broken).some(({ detail, code }) => detail === key && code === 'invariant'),
      'broken',
    )
    assert.deepEqual(issuesOf(met), [], 'met')
  })
}

/** Elements of a service that are valid. */
const VALID: readonly (readonly [title: string, elements: string])[] = [
  ['nothing besides the narrative', '{}'],
  [
    'a primitive with an extension and without value',
    '{"_name":{"extension":[{"url":"urn:absent","valueCode":"unknown"}]}}',
  ],
  ['a value with an id beside it', '{"name":"x","_name":{"id":"n1"}}'],
  [
    'a mandatory value that is absent for a reason',
    '{"notAvailable":[{"_description":{"extension":[{"url":"urn:absent","valueCode":"unknown"}]}}]}',
  ],
  [
    'null in a list beside an extension',
    '{"availableTime":[{"daysOfWeek":["mon",null],"_daysOfWeek":[null,{"extension":[{"url":"u","valueCode":"x"}]}]}]}',
  ],
  [
    'office hours that start after they end',
    '{"availableTime":[{"availableStartTime":"08:30:00","availableEndTime":"05:30:00"}]}',
  ],
  [
    'a period whose partial dates cannot be compared',
    '{"notAvailable":[{"description":"x","during":{"start":"2024-02-15","end":"2024-02"}}]}',
  ],
  [
    'a period within one day, with and without time',
    '{"notAvailable":[{"description":"x","during":{"start":"2024-02-15T10:00:00Z","end":"2024-02-15"}}]}',
  ],
  ['a content type with parameters', '{"photo":{"contentType":"text/plain; charset=utf-8","data":"AAAA"}}'],
  [
    'a code of a preferred value set that is unknown',
    '{"language":"tlh-x-own","communication":[{"coding":[{"code":"xx"}]}]}',
  ],
  [
    'a contained resource that refers to its container',
    '{"contained":[{"resourceType":"Basic","id":"a","code":{"text":"x"},"subject":{"reference":"#"}}]}',
  ],
  [
    'a contained resource that an extension names',
    '{"contained":[{"resourceType":"Location","id":"a"}],"extension":[{"url":"u","valueUri":"#a"}]}',
  ],
  [
    'a contained resource of a type without definition',
    '{"contained":[{"resourceType":"ResearchStudy","id":"a","phase":{"text":"x"}}],"extension":[{"url":"u","valueReference":{"reference":"#a"}}]}',
  ],
  [
    'references in every form',
    '{"location":[{"reference":"Location/1"},{"reference":"Location/1/_history/2"},{"reference":"http://a/fhir/Location/1"},{"reference":"urn:uuid:c757873d-ec9a-4326-a141-556f43239520"},{"identifier":{"value":"x"}},{"display":"x"}]}',
  ],
  ['a Quantity with a comparator', '{"extension":[{"url":"u","valueQuantity":{"comparator":"<","value":1.50}}]}'],
  [
    'sampled data',
    '{"extension":[{"url":"u","valueSampledData":{"origin":{"value":0},"period":1,"dimensions":1,"data":"1 -2.5 E U L"}}]}',
  ],
]

for (const [title, elements] of VALID) {
  test(`${title} is valid`, () => {
    assert.deepEqual(validateResource(serviceWith(json(elements)), 'HealthcareService'), [])
  })
}

test('the example with every element is valid', () => {
  assert.deepEqual(validateResource(fullService(), 'HealthcareService'), [])
})

test('the smallest resource is valid; a missing narrative is a warning (dom-6)', () => {
  const issues = validateResource(json('{"resourceType":"HealthcareService"}'))
  assert.equal(hasErrors(issues), false)
  assert.deepEqual(
    issues.map(({ severity, detail }) => [severity, detail]),
    [['warning', 'dom-6']],
  )
})

test('a reference without a form of the standard is a warning', () => {
  const issues = validateResource(serviceWith({ location: [{ reference: 'room 7' }] }))
  assert.deepEqual(
    issues.map(({ severity, code }) => [severity, code]),
    [['warning', 'value']],
  )
})

test('wrong sampled data are refused', () => {
  const data = { origin: { value: 0 }, period: 1, dimensions: 1, data: '1  2' }
  const issues = validateResource(serviceWith({ extension: [{ url: 'u', valueSampledData: data }] }))
  assert.equal(issues[0]!.expression, 'HealthcareService.extension[0].value.data')
})

for (const [title, value, code, expression] of [
  ['an array', [], 'structure', undefined],
  ['null', null, 'structure', undefined],
  ['text', 'x', 'structure', undefined],
  ['an object without resourceType', { id: 'a' }, 'required', 'resourceType'],
  ['an unknown resource type', { resourceType: 'Robot' }, 'structure', 'Robot.resourceType'],
  ['a resource type that is a base', { resourceType: 'DomainResource' }, 'structure', 'DomainResource.resourceType'],
  ['a resource type that is a data type', { resourceType: 'Period' }, 'structure', 'Period.resourceType'],
  ['a resource type __proto__', json('{"resourceType":"__proto__"}'), 'structure', '__proto__.resourceType'],
  ['a resource type that is a number', { resourceType: 1 }, 'structure', 'resourceType'],
  ['another resource', { resourceType: 'Patient' }, 'value', 'Patient.resourceType'],
] as const) {
  test(`${title} is no HealthcareService`, () => {
    const [issue, ...others] = validateResource(value, 'HealthcareService')
    assert.deepEqual([issue!.code, issue!.expression || undefined, others], [code, expression, []])
  })
}

test('every fault of a resource is reported at once, up to a hundred and a note', () => {
  const identifier = Array.from({ length: 200 }, () => ({ use: 'bad', system: 'a b' }))
  const issues = validateResource(serviceWith({ identifier }))
  assert.equal(issues.length, 101)
  assert.deepEqual([issues.at(-1)!.severity, issues.at(-1)!.code], ['information', 'incomplete'])
})

test('a diagnostic holds a short part of a value', () => {
  const [issue] = validateResource(serviceWith({ language: ` ${'x'.repeat(10_000)}` }))
  assert.ok(issue!.diagnostics!.length < 250)
})

test('faults of structure and values are 400, broken rules 422', () => {
  assert.equal(situationOfResource(validateResource(serviceWith({ x: 1 }))), 'resource-structure')
  assert.equal(situationOfResource(validateResource(serviceWith({ telecom: [{ value: 'x' }] }))), 'resource-rules')
})
