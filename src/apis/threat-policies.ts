/** Built-in policies against threats, and guardrails. */
import {
  BOTH,
  type BuiltInPolicy,
  element,
  FLAG,
  inert,
  NUMBER,
  optional,
  type PolicyParameter,
  type PolicyValues,
  REQUEST,
  required,
  text,
  xml,
} from './policy-parameters.ts'

/** Limits by the names of the reference platform; the attribute of the element behind each. */
const JSON_LIMITS: Readonly<Record<string, string>> = {
  maxPropertyCount: 'maxProperties',
  maxStringLength: 'maxStringLength',
  maxArrayElementCount: 'maxArrayElements',
  maxKeyLength: 'maxKeyLength',
  maxJsonDepth: 'maxDepth',
}
const XML_LIMITS: Readonly<Record<string, string>> = {
  maxXMLDepth: 'maxDepth',
  elementCount: 'maxElements',
  attributeCount: 'maxAttributes',
  attributeLength: 'maxAttributeLength',
  childrenPerElement: 'maxChildren',
  textLength: 'maxTextLength',
}
const LIMIT_OF_PLATFORM = '100'

function limits(name: string, attributes: Readonly<Record<string, string>>, others: readonly PolicyParameter[]) {
  const parameters = Object.keys(attributes).map(limit => optional(limit, LIMIT_OF_PLATFORM, NUMBER))
  const elements = (values: PolicyValues): string => {
    const given = Object.entries(attributes).map(([limit, attribute]) => [attribute, text(values, limit)])
    return element(name, Object.fromEntries(given))
  }
  return { flows: REQUEST, parameters: [...parameters, ...others], elements }
}

export const jsonThreats: BuiltInPolicy = limits('jsonThreatProtection', JSON_LIMITS, [
  inert('requestMessageBufferSize', 'limits of the gateway hold', '1024'),
  inert('jsonSchemaValidator', 'the gateway validates', 'org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator'),
])
/** Document types are refused whatever the policy says. */
export const xmlThreats: BuiltInPolicy = limits('xmlThreatProtection', XML_LIMITS, [])

/** Statements of SQL as injections write them. */
const SQL =
  '(?i)(?:\\bunion\\s+(?:all\\s+)?select\\b' +
  '|\\b(?:drop|alter|create|truncate)\\s+(?:table|database|view|schema|procedure)\\b' +
  "|\\binsert\\s+into\\b|\\bdelete\\s+from\\b|\\bselect\\b.*\\bfrom\\b|'\\s*(?:or|and)\\b|'\\s*;|--\\s*$)"

export const regexThreats: BuiltInPolicy = {
  flows: REQUEST,
  parameters: [
    optional('threatType', 'SQL-Injection'),
    optional('regex', SQL),
    ...['enabledCheckBody', 'enabledCheckHeaders', 'enabledCheckPathParams'].map(name => optional(name, 'true', FLAG)),
  ],
  elements: values => {
    const ofPath = text(values, 'enabledCheckPathParams').toLowerCase()
    return element('regexThreatProtection', {
      ...{ name: text(values, 'threatType'), pattern: text(values, 'regex'), path: ofPath, query: ofPath },
      body: text(values, 'enabledCheckBody').toLowerCase(),
      headers: text(values, 'enabledCheckHeaders').toLowerCase(),
    })
  },
}

interface GuardrailRule {
  /** Parameters of the rule, with the attribute of each; '' for none. */
  readonly own: Readonly<Record<string, string>>
  /** The remedy where one of them is missing. */
  readonly hint?: string
  readonly others?: readonly PolicyParameter[]
  readonly inner?: BuiltInPolicy['elements']
}

function guardrail(type: string, { own, hint = 'add it', others = [], inner }: GuardrailRule): BuiltInPolicy {
  return {
    flows: BOTH,
    parameters: [
      optional('name'),
      ...Object.keys(own).map(name => ({ ...required(name), hint })),
      ...others,
      optional('jsonPath'),
      ...['invert', 'showAssessment'].map(name => optional(name, 'false', FLAG)),
    ],
    elements: (values, flow) => {
      const rule = Object.entries(own).map(([name, attribute]) => [attribute, text(values, name)])
      const attributes = Object.fromEntries(rule.filter(([attribute]) => attribute !== ''))
      const given = ['name', 'jsonPath', 'invert', 'showAssessment'].map(name => [name, text(values, name)])
      return element('guardrail', { type, ...attributes, ...Object.fromEntries(given) }, inner?.(values, flow))
    },
  }
}

const COUNTS = { own: { min: 'min', max: 'max' } }
const NO_REQUESTS = 'the gateway asks no URL of a text; it compares each with allowedUrls'
/** Guardrails by their names. */
export const GUARDRAILS = {
  WordCountGuardrail: guardrail('wordCount', COUNTS),
  SentenceCountGuardrail: guardrail('sentenceCount', COUNTS),
  ContentLengthGuardrail: guardrail('contentLength', COUNTS),
  RegexGuardrail: guardrail('regex', { own: { regex: 'pattern' } }),
  JSONSchemaGuardrail: guardrail('jsonSchema', {
    own: { schema: '' },
    inner: v => xml`<schema>${text(v, 'schema')}</schema>`,
  }),
  // Ours: the hosts and URLs that a text may hold. The reference platform calls each URL of a text instead.
  URLGuardrail: guardrail('url', {
    own: { allowedUrls: '' },
    hint: `${NO_REQUESTS}: write the hosts and URLs that a text may hold, as "example.com, *.example.org"`,
    others: [inert('onlyDNS', NO_REQUESTS, 'false'), inert('timeout', NO_REQUESTS, '3000')],
    inner: v =>
      text(v, 'allowedUrls')
        .split(/[\s,]+/)
        .map(url => xml`<url>${url}</url>`)
        .join(''),
  }),
}
