/**
 * The policies that every API may use, with the names and parameters that the reference platform gives them, and some
 * of our own. Each becomes a sequence of the mediation language.
 */
import { type Flow, FLOWS } from './api-definition.ts'
import {
  BOTH,
  type BuiltInPolicy,
  element,
  FLAG,
  inert,
  optional,
  type PolicyParameter,
  type PolicyValues,
  REQUEST,
  required,
  text,
  TOKEN,
  xml,
} from './policy-parameters.ts'
import { GUARDRAILS, jsonThreats, regexThreats, xmlThreats } from './threat-policies.ts'

// ---- heads ----------------------------------------------------------------------------------------------------------

const setHeader: BuiltInPolicy = {
  flows: FLOWS,
  parameters: [required('headerName', TOKEN), optional('headerValue'), optional('headerExpression')],
  elements: values => {
    const [name, expression] = [text(values, 'headerName'), text(values, 'headerExpression')]
    return expression === ''
      ? xml`<property name="${name}" value="${text(values, 'headerValue')}" scope="transport"/>`
      : xml`<property name="${name}" expression="${expression}" scope="transport"/>`
  },
}

const removeHeader: BuiltInPolicy = {
  flows: FLOWS,
  parameters: [required('headerName', TOKEN)],
  elements: values => xml`<property name="${text(values, 'headerName')}" scope="transport" action="remove"/>`,
}

/** A part of a query (RFC 3986 3.4), percent-encoded but for spaces, as exports have it. */
const QUERY_PART = /^(?:[A-Za-z0-9._~!$'()*,;:@/?+ -]|%[0-9A-Fa-f]{2})*$/

function ofQuery(name: string): PolicyParameter {
  return { ...required(name, QUERY_PART), remedy: 'percent-encode it: & is %26' }
}

const addQueryParam: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [ofQuery('paramKey'), ofQuery('paramValue')],
  elements: values => xml`<queryParameter name="${query(values, 'paramKey')}" value="${query(values, 'paramValue')}"/>`,
}

const removeQueryParam: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [ofQuery('paramKey')],
  elements: values => xml`<queryParameter name="${query(values, 'paramKey')}" action="remove"/>`,
}

/** Releases name the parameter of the path differently. */
function rewritePath(parameter: string, keepsQuery: 'true' | 'false'): BuiltInPolicy {
  return {
    flows: REQUEST,
    parameters: [required(parameter), optional('includeQueryParams', keepsQuery, FLAG)],
    template: parameter,
    elements: values => {
      const [path, keeps] = [text(values, parameter), text(values, 'includeQueryParams').toLowerCase()]
      return keeps === 'true' || path.includes('{')
        ? xml`<resourcePath value="${path}" keepsQuery="${keeps}"/>`
        : xml`<property name="REST_URL_POSTFIX" value="${path.startsWith('/') ? path : `/${path}`}" scope="axis2"/>`
    },
  }
}

function changeMethod(parameter: string, ...others: readonly string[]): BuiltInPolicy {
  return {
    flows: REQUEST,
    parameters: [required(parameter, TOKEN), ...others.map(name => optional(name))],
    elements: values =>
      xml`<property name="HTTP_METHOD" value="${text(values, parameter).toUpperCase()}" scope="axis2"/>`,
  }
}

const setTo: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [required('value')],
  destination: 'value',
  elements: values => xml`<header name="To" value="${text(values, 'value')}"/>`,
}

const disableChunking: BuiltInPolicy = {
  flows: BOTH,
  parameters: [],
  elements: () => '<property name="DISABLE_CHUNKING" value="true" scope="axis2"/>',
}

const ACCEPT = 'WSO2_AM_API_ACCEPT_MESSAGE_TYPE'

const preserveAcceptHeader: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [],
  elements: () =>
    `<property name="${ACCEPT}" expression="$trp:Accept"/><property name="Accept" scope="transport" action="remove"/>`,
}

const applyAcceptHeader: BuiltInPolicy = {
  flows: ['response'],
  parameters: [],
  elements: () => `<property name="messageType" expression="$ctx:${ACCEPT}" scope="axis2"/>`,
}

// ---- logs -----------------------------------------------------------------------------------------------------------

const addLogMessage: BuiltInPolicy = {
  flows: FLOWS,
  parameters: [optional('message', 'MESSAGE'), optional('level', 'full', /^(?:full|headers|simple|custom)$/)],
  elements: values =>
    xml`<log level="${text(values, 'level')}"><property name="MESSAGE" value="${text(values, 'message')}"/></log>`,
}

function debugFlow(flow: Flow, label: string): BuiltInPolicy {
  return {
    flows: [flow],
    parameters: [],
    elements: () => xml`<log level="full"><property name="${label}" value="${label}"/></log>`,
  }
}

// ---- bodies ---------------------------------------------------------------------------------------------------------

function convertTo(mediaType: string): BuiltInPolicy {
  return {
    flows: BOTH,
    parameters: [],
    elements: () => xml`<property name="messageType" value="${mediaType}" scope="axis2"/>`,
  }
}

const jsonFault: BuiltInPolicy = {
  flows: ['fault'],
  parameters: [],
  elements: () =>
    [
      '<filter xpath="boolean($ctx:CUSTOM_HTTP_SC)">',
      '<then><property name="HTTP_SC" expression="$ctx:CUSTOM_HTTP_SC" scope="axis2"/></then>',
      '<else><property name="HTTP_SC" value="500" scope="axis2"/></else></filter>',
      '<payloadFactory media-type="json"><format>{"fault":{"code":$1,"type":"Status report",',
      '"message":"Runtime Error","description":"$2"}}</format>',
      '<args><arg expression="$ctx:ERROR_CODE"/><arg expression="$ctx:ERROR_MESSAGE"/></args></payloadFactory>',
      '<respond/>',
    ].join(''),
}

const mock: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [
    optional('payload'),
    optional('contentType', 'application/json'),
    optional('statusCode', '200', /^[2-5]\d\d$/),
  ],
  elements: values => {
    const payload = text(values, 'payload')
    const body = [
      '<payloadFactory media-type="text"><format>$1</format>',
      xml`<args><arg value="${payload}"/></args></payloadFactory>`,
      '<property name="messageType" value="text/plain" scope="axis2"/>',
      xml`<property name="ContentType" value="${text(values, 'contentType')}" scope="axis2"/>`,
    ]
    const none = ['<property name="NO_ENTITY_BODY" value="true" scope="axis2"/>']
    return [
      xml`<property name="HTTP_SC" value="${text(values, 'statusCode')}" scope="axis2"/>`,
      ...(payload === '' ? none : body),
      '<respond/>',
    ].join('')
  },
}

// ---- decisions ------------------------------------------------------------------------------------------------------

const opaPolicy: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [
    required('serverUrl', /^https?:\/\//i),
    { ...optional('accessKey'), isSecret: true },
    required('policy'),
    { ...required('rule'), fallback: 'allow' },
    // The policy server gets no token, so that its decision could be another one.
    { ...optional('sendAccessToken', 'false', /^false$/i), remedy: 'write false: the policy server gets no token' },
    optional('additionalProperties'),
    inert('maxOpenConnections', 'limits of the gateway hold', '500'),
    inert('connectionTimeout', 'limits of the gateway hold', '30'),
  ],
  elements: values =>
    element(
      'opa',
      {
        ...{ serverUrl: text(values, 'serverUrl'), accessToken: text(values, 'accessKey') },
        ...{ policy: text(values, 'policy'), rule: text(values, 'rule') },
      },
      xml`<parameter name="additionalMCProperties" value="${text(values, 'additionalProperties')}"/>`,
    ),
}

const accessClaim: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [
    required('accessVerificationClaim'),
    required('accessVerificationClaimValue'),
    optional('accessVerificationClaimValueRegex'),
    optional('shouldAllowValidation', 'false', FLAG),
  ],
  elements: values =>
    element('accessClaim', {
      name: text(values, 'accessVerificationClaim'),
      value: text(values, 'accessVerificationClaimValue'),
      pattern: text(values, 'accessVerificationClaimValueRegex'),
      allowsMismatch: text(values, 'shouldAllowValidation').toLowerCase(),
    }),
}

const callInterceptorService: BuiltInPolicy = {
  flows: BOTH,
  parameters: [required('interceptorServiceURL', /^https?:\/\/[^\s{}]+$/i), required('includes')],
  elements: (values, flow) => {
    const base = text(values, 'interceptorServiceURL').replace(/\/+$/, '')
    const url = `${base}/api/v1/handle-${flow}`
    const endpoint = xml`<endpoint><http method="post" uri-template="${url}"/></endpoint>`
    return xml`<interceptor includes="${text(values, 'includes')}">`.concat(endpoint, '</interceptor>')
  },
}

const POLICIES: Readonly<Record<string, BuiltInPolicy>> = {
  addHeader: setHeader,
  setHeader,
  ccAddHeader: setHeader,
  apkAddHeader: setHeader,
  removeHeader,
  ccRemoveHeader: removeHeader,
  apkRemoveHeader: removeHeader,
  addQueryParam,
  addQueryParams: addQueryParam,
  removeQueryParam,
  rewriteResourcePath: rewritePath('newResourcePath', 'true'),
  ccRewriteResourcePath: rewritePath('resourcePath', 'false'),
  changeHTTPMethod: changeMethod('httpMethod'),
  rewriteHTTPMethod: changeMethod('httpMethod'),
  ccChangeHTTPMethod: changeMethod('updatedMethod', 'currentMethod'),
  setToHeader: setTo,
  setToHeaderWS: setTo,
  changeEndpoint: setTo,
  disableChunking,
  preserveAcceptHeader,
  applyAcceptHeader,
  addLogMessage,
  debugRequestFlow: debugFlow('request', 'IN_MESSAGE'),
  debugResponseFlow: debugFlow('response', 'OUT_MESSAGE'),
  debugJsonFault: debugFlow('fault', 'FAULT_MESSAGE'),
  jsonToXML: convertTo('application/xml'),
  xmlToJson: convertTo('application/json'),
  jsonFault,
  mock,
  opaPolicy,
  jwtClaimBasedAccessValidator: accessClaim,
  jsonValidator: jsonThreats,
  jsonThreatProtector: jsonThreats,
  xmlValidator: xmlThreats,
  xmlThreatProtector: xmlThreats,
  regexPolicy: regexThreats,
  regularExpressionThreatProtector: regexThreats,
  ...GUARDRAILS,
  callInterceptorService,
  ccCallInterceptorService: callInterceptorService,
}
/** Exports differ in the case of some names. */
const BY_LOWER_CASE = new Map(Object.entries(POLICIES).map(([name, policy]) => [name.toLowerCase(), policy]))

export const BUILT_IN_NAMES: readonly string[] = Object.keys(POLICIES)

export function builtInPolicy(name: string): BuiltInPolicy | undefined {
  return BY_LOWER_CASE.get(name.toLowerCase())
}

/** Exports give query parameters percent-encoded, and spaces as they are. */
function query(values: PolicyValues, name: string): string {
  return text(values, name).replaceAll(' ', '%20')
}
