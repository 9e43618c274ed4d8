import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  definitionOf,
  INVARIANTS,
  RESOURCE_TYPES,
  resourceDefinition,
  valueSetOf,
} from '../../../src/mounted/healthcare/definition-table.ts'
import { RULES } from '../../../src/mounted/healthcare/invariants.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** Name, cardinality, type and flags of each element, as the specification's table of R4 has them. `?!`: modifier. */
const SERVICE = `
id 0..1 id Σ
meta 0..1 Meta Σ
implicitRules 0..1 uri ?!Σ
language 0..1 code
text 0..1 Narrative
contained 0..* Resource
extension 0..* Extension
modifierExtension 0..* Extension ?!
identifier 0..* Identifier Σ
active 0..1 boolean ?!Σ
providedBy 0..1 Reference(Organization) Σ
category 0..* CodeableConcept Σ
type 0..* CodeableConcept Σ
specialty 0..* CodeableConcept Σ
location 0..* Reference(Location) Σ
name 0..1 string Σ
comment 0..1 string Σ
extraDetails 0..1 markdown
photo 0..1 Attachment Σ
telecom 0..* ContactPoint
coverageArea 0..* Reference(Location)
serviceProvisionCode 0..* CodeableConcept
eligibility 0..* HealthcareService.eligibility
program 0..* CodeableConcept
characteristic 0..* CodeableConcept
communication 0..* CodeableConcept
referralMethod 0..* CodeableConcept
appointmentRequired 0..1 boolean
availableTime 0..* HealthcareService.availableTime
notAvailable 0..* HealthcareService.notAvailable
availabilityExceptions 0..1 string
endpoint 0..* Reference(Endpoint)`
/** The same for the parts and shapes that the API uses, elements of their bases left out. */
const SHAPES: Readonly<Record<string, string>> = {
  'HealthcareService.eligibility': 'code 0..1 CodeableConcept; comment 0..1 markdown',
  'HealthcareService.availableTime':
    'daysOfWeek 0..* code; allDay 0..1 boolean; availableStartTime 0..1 time; availableEndTime 0..1 time',
  'HealthcareService.notAvailable': 'description 1..1 string; during 0..1 Period',
  Meta:
    'versionId 0..1 id Σ; lastUpdated 0..1 instant Σ; source 0..1 uri Σ; profile 0..* canonical Σ; ' +
    'security 0..* Coding Σ; tag 0..* Coding Σ',
  Narrative: 'status 1..1 code; div 1..1 xhtml',
  ContactPoint:
    'system 0..1 code Σ; value 0..1 string Σ; use 0..1 code ?!Σ; rank 0..1 positiveInt Σ; period 0..1 Period Σ',
  Identifier:
    'use 0..1 code ?!Σ; type 0..1 CodeableConcept Σ; system 0..1 uri Σ; value 0..1 string Σ; period 0..1 Period Σ; ' +
    'assigner 0..1 Reference(Organization) Σ',
  Attachment:
    'contentType 0..1 code Σ; language 0..1 code Σ; data 0..1 base64Binary; url 0..1 url Σ; size 0..1 unsignedInt Σ; ' +
    'hash 0..1 base64Binary Σ; title 0..1 string Σ; creation 0..1 dateTime Σ',
  Reference: 'reference 0..1 string Σ; type 0..1 uri Σ; identifier 0..1 Identifier Σ; display 0..1 string Σ',
  Period: 'start 0..1 dateTime Σ; end 0..1 dateTime Σ',
  Money: 'value 0..1 decimal Σ; currency 0..1 code Σ',
  Coding:
    'system 0..1 uri Σ; version 0..1 string Σ; code 0..1 code Σ; display 0..1 string Σ; userSelected 0..1 boolean Σ',
  CodeableConcept: 'coding 0..* Coding Σ; text 0..1 string Σ',
  Quantity: 'value 0..1 decimal Σ; comparator 0..1 code ?!Σ; unit 0..1 string Σ; system 0..1 uri Σ; code 0..1 code Σ',
  SampledData:
    'origin 1..1 SimpleQuantity Σ; period 1..1 decimal Σ; factor 0..1 decimal Σ; lowerLimit 0..1 decimal Σ; ' +
    'upperLimit 0..1 decimal Σ; dimensions 1..1 positiveInt Σ; data 0..1 string',
  Bundle:
    'identifier 0..1 Identifier Σ; type 1..1 code Σ; timestamp 0..1 instant Σ; total 0..1 unsignedInt Σ; ' +
    'link 0..* Bundle.link Σ; entry 0..* Bundle.entry Σ; signature 0..1 Signature Σ',
  'Bundle.link': 'relation 1..1 string Σ; url 1..1 uri Σ',
  'Bundle.entry':
    'link 0..* Bundle.link Σ; fullUrl 0..1 uri Σ; resource 0..1 Resource Σ; search 0..1 Bundle.entry.search Σ; ' +
    'request 0..1 Bundle.entry.request Σ; response 0..1 Bundle.entry.response Σ',
  'Bundle.entry.search': 'mode 0..1 code Σ; score 0..1 decimal Σ',
  'Bundle.entry.request':
    'method 1..1 code Σ; url 1..1 uri Σ; ifNoneMatch 0..1 string Σ; ifModifiedSince 0..1 instant Σ; ' +
    'ifMatch 0..1 string Σ; ifNoneExist 0..1 string Σ',
  'Bundle.entry.response':
    'status 1..1 string Σ; location 0..1 uri Σ; etag 0..1 string Σ; lastModified 0..1 instant Σ; ' +
    'outcome 0..1 Resource Σ',
  'OperationOutcome.issue':
    'severity 1..1 code Σ; code 1..1 code Σ; details 0..1 CodeableConcept Σ; diagnostics 0..1 string Σ; ' +
    'location 0..* string Σ; expression 0..* string Σ',
}
/** Codes of required bindings, as the specification lists them. */
const REQUIRED: Readonly<Record<string, string>> = {
  'days-of-week': 'mon tue wed thu fri sat sun',
  'contact-point-system': 'phone fax email pager url sms other',
  'contact-point-use': 'home work temp old mobile',
  'identifier-use': 'usual official temp secondary old',
  'narrative-status': 'generated extensions additional empty',
  'quantity-comparator': '< <= >= >',
  'address-use': 'home work temp old billing',
  'address-type': 'postal physical both',
  'name-use': 'usual official temp nickname anonymous old maiden',
  'search-entry-mode': 'match include outcome',
  'http-verb': 'GET HEAD POST PUT DELETE PATCH',
  'issue-severity': 'fatal error warning information',
  'bundle-type': 'document message transaction transaction-response batch batch-response history searchset collection',
}
const PRIMITIVES =
  'base64Binary boolean canonical code date dateTime decimal id instant integer markdown oid positiveInt string time ' +
  'unsignedInt uri url uuid xhtml'
const BASES = ['Element', 'BackboneElement', 'Resource', 'DomainResource']

/** The rows of a type; without those of its bases unless `isWhole`. */
function shapeOf(name: string, isWhole: boolean): readonly string[] {
  const { elements, members } = definitionOf(name)!
  const inherited = isWhole ? [] : BASES.flatMap(base => definitionOf(base)!.elements)
  const own = elements.filter(element => !inherited.includes(element))
  return own.map(element => {
    const { type, targets } = members.get(element.jsonNames[0]!)!
    const target = targets.length === 0 ? '' : `(${targets.join(',')})`
    const flags = `${element.isModifier ? '?!' : ''}${element.isSummary ? 'Σ' : ''}`
    const cardinality = `${element.isRequired ? 1 : 0}..${element.isList ? '*' : '1'}`
    return `${element.name} ${cardinality} ${type}${target} ${flags}`.trim()
  })
}

test('the committed table is what the generator makes of the published definitions', () => {
  const made = execFileSync(process.execPath, [join(ROOT, 'scripts/healthcare-definitions.ts')], {
    encoding: 'utf8',
    maxBuffer: 10_000_000,
  })
  assert.ok(made === readFileSync(join(ROOT, 'src/mounted/healthcare/definitions.ts'), 'utf8'))
})

test('HealthcareService has the elements of R4 and no others', () => {
  const expected = SERVICE.trim().split('\n')
  assert.deepEqual(shapeOf('HealthcareService', true).toSorted(), expected.toSorted())
})

for (const [name, shape] of Object.entries(SHAPES)) {
  test(`${name} has the elements of the specification`, () => {
    assert.deepEqual(shapeOf(name, false), shape.split('; '))
  })
}

test('an extension has a url and a value of any of the 50 types', () => {
  const { elements } = definitionOf('Extension')!
  assert.equal(elements.find(({ name }) => name === 'value')!.jsonNames.length, 50)
  assert.equal(elements.find(({ name }) => name === 'url')!.isRequired, true)
})

test('backbone elements have modifier extensions', () => {
  const { elements } = definitionOf('HealthcareService.eligibility')!
  const [modifier] = elements.filter(({ name }) => name === 'modifierExtension')
  assert.deepEqual([modifier!.isModifier, modifier!.isSummary], [true, true])
})

for (const [name, codes] of Object.entries(REQUIRED)) {
  test(`the value set ${name} has the codes of the specification`, () => {
    assert.deepEqual([...valueSetOf(name).codes].toSorted(), codes.split(' ').toSorted())
  })
}

test('the table knows the 146 resources of R4 and none of other releases', () => {
  assert.equal(RESOURCE_TYPES.size, 146)
  assert.ok(!RESOURCE_TYPES.has('SubscriptionStatus'))
  for (const name of RESOURCE_TYPES) assert.ok(resourceDefinition(name)!.isResource, name)
})

test('every type of the table can be read, and its elements have types that exist', () => {
  const seen = new Set<string>()
  const visit = (name: string): void => {
    if (seen.has(name)) return
    seen.add(name)
    for (const { type } of definitionOf(name)?.members.values() ?? []) visit(type)
  }
  for (const name of RESOURCE_TYPES) visit(name)
  const primitives = [...seen].filter(name => /^[a-z]/.test(name))
  assert.deepEqual(primitives.toSorted(), PRIMITIVES.split(' '))
  assert.deepEqual(
    [...seen].filter(name => /^[A-Z]/.test(name) && definitionOf(name) === undefined),
    [],
  )
})

test('every invariant of the table has a function', () => {
  const ofResources = ['dom-2', 'dom-3', 'dom-4', 'dom-5', 'dom-6', 'ref-1', 'txt-1', 'txt-2']
  assert.deepEqual([...INVARIANTS.keys()].toSorted(), [...Object.keys(RULES), ...ofResources].toSorted())
})

test('bdl-6 does not exist', () => {
  assert.ok(!INVARIANTS.has('bdl-6'))
})
