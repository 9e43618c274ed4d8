/** A service with every element of HealthcareService, built as the official example of R4 is, and small ones. */
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { readJson } from '../../../src/mounted/healthcare/json-text.ts'

const CODES = 'http://terminology.hl7.org/CodeSystem'
const SNOMED = 'http://snomed.info/sct'

/** The official example has office hours that start after they end (08:30 to 05:30): R4 allows it. */
export const FULL_SERVICE = JSON.stringify({
  resourceType: 'HealthcareService',
  id: 'example',
  meta: {
    versionId: '1',
    lastUpdated: '2024-03-01T12:00:00.000Z',
    profile: ['http://example.org/StructureDefinition/service|1.0'],
    tag: [{ system: `${CODES}/v3-ActReason`, code: 'HTEST', display: 'test health data' }],
  },
  language: 'en',
  text: {
    status: 'generated',
    div: '<div xmlns="http://www.w3.org/1999/xhtml"><p>Psychology <b>services</b></p></div>',
  },
  contained: [
    { resourceType: 'Location', id: 'area', mode: 'instance', description: 'Greater Den Burg area', name: 'Den Burg' },
  ],
  extension: [{ url: 'http://example.org/rating', valueDecimal: 4.5 }],
  identifier: [{ use: 'official', system: 'http://example.org/shared-ids', value: 'HS-12' }],
  active: true,
  providedBy: { reference: 'Organization/f001', type: 'Organization', display: 'Burgers University Medical Center' },
  category: [
    { coding: [{ system: `${CODES}/service-category`, code: '8', display: 'Counselling' }], text: 'Counselling' },
  ],
  type: [
    { coding: [{ system: SNOMED, code: '394913002', display: 'Psychotherapy' }] },
    { coding: [{ system: SNOMED, code: '394587001', display: 'Psychiatry', userSelected: true }] },
  ],
  specialty: [{ coding: [{ system: SNOMED, code: '47505003', display: 'Posttraumatic stress disorder' }] }],
  location: [{ reference: 'Location/1' }, { reference: 'https://other.example/fhir/Location/2/_history/3' }],
  name: 'Psychology services',
  comment: 'Many years of experience',
  extraDetails: 'Waiting times of **three months**',
  photo: { contentType: 'image/png; charset=binary', data: 'iVBORw0KGgo=', size: 8, title: 'House' },
  telecom: [
    { system: 'phone', value: '(555) silent', use: 'work', rank: 1 },
    { system: 'email', value: 'services@example.com', use: 'work', period: { start: '2020', end: '2030-12' } },
  ],
  coverageArea: [{ reference: '#area', display: 'Greater Den Burg area' }],
  serviceProvisionCode: [{ coding: [{ system: `${CODES}/service-provision-conditions`, code: 'cost' }] }],
  eligibility: [{ code: { coding: [{ display: 'DVA required' }] }, comment: 'Evidence of status' }],
  program: [{ text: 'PTSD outreach' }],
  characteristic: [{ coding: [{ display: 'Wheelchair access' }] }],
  communication: [{ coding: [{ system: 'urn:ietf:bcp:47', code: 'nl' }] }],
  referralMethod: [{ coding: [{ code: 'phone' }] }, { coding: [{ code: 'mail' }] }],
  appointmentRequired: false,
  availableTime: [
    { daysOfWeek: ['wed'], allDay: true },
    { daysOfWeek: ['mon', 'tue'], availableStartTime: '08:30:00', availableEndTime: '05:30:00' },
  ],
  notAvailable: [
    { id: 'closed-1', description: 'Christmas', during: { start: '2015-12-25', end: '2015-12-26' } },
    { description: 'New Year', during: { start: '2016-01-01', end: '2016-01-01' } },
  ],
  availabilityExceptions: 'Reduced capacity at Christmas',
  endpoint: [{ reference: 'Endpoint/example' }],
})

export const NARRATIVE = { status: 'generated', div: '<div xmlns="http://www.w3.org/1999/xhtml">A service</div>' }

/** A service with a narrative, so that dom-6 does not warn, and these elements. */
export function serviceWith(elements: JsonObject): JsonObject {
  return { resourceType: 'HealthcareService', text: NARRATIVE, ...elements }
}

export function fullService(): JsonObject {
  return readJson(FULL_SERVICE) as JsonObject
}
