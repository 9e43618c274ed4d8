/** Sequences in the manner of public tutorials do what those say: real worker threads, scripted backends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowTexts } from '../harness/flows.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { callTo, type Reaction, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

/** A request, and the response: status and body. */
type Exchange = readonly [line: string, type: string, body: string, status: number, answer: string]

interface Example {
  readonly flow: (port: number) => FlowTexts
  readonly reactions?: Readonly<Record<string, Reaction>>
  readonly exchanges: readonly Exchange[]
}

const JSON_TYPE = 'application/json'
const XML_TYPE = 'application/xml'
const POST = 'POST /a/x'
const IN_XML = 'Content-Type: text/xml\r\n'
const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
const args = (...expressions: readonly string[]) =>
  `<args>${expressions.map(each => `<arg evaluator="xml" expression="${each}"/>`).join('')}</args>`
const json = (format: string, ...expressions: readonly string[]) =>
  `<payloadFactory media-type="json"><format>${format}</format>${args(...expressions)}</payloadFactory>`
const keep = (name: string, expression: string) =>
  `<property name="${name}" expression="${expression}" scope="default" type="STRING"/>`
const inBody = (text: string) =>
  `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${text}</s:Body></s:Envelope>`
const QUOTE = inBody('<n:quote xmlns:n="urn:q"><n:symbol>IBM</n:symbol><n:last>84.5</n:last></n:quote>')
const FAULT = inBody('<s:Fault><faultcode>s:Server</faultcode><faultstring>No such order</faultstring></s:Fault>')
/** Documents of services have a default namespace more often than a prefix. */
const ORDER =
  '<order xmlns="urn:o"><item><id>7</id><count>2</count></item><item><id>8</id><count>3</count></item></order>'
const answerOf = (change: (body: { readonly [name: string]: unknown }) => object): Reaction => {
  return ({ body }) => [200, JSON.stringify(change(JSON.parse(body) as { readonly [name: string]: unknown }))]
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  'service chaining: what one service answers is a part of what the next one gets': {
    reactions: {
      '/reserve': says(200, '{"appointment":1,"doctor":{"name":"Thomas","fee":7000},"patient":{"ssn":"234"}}'),
      '/fee': says(200, '{"patientName":"Ann","actualFee":"7000.0"}'),
      '/settle': answerOf(body => ({ got: body })),
    },
    flow: port => ({
      request: [
        keep('card', 'json-eval($.cardNo)') + callTo(port, '/reserve'),
        keep('uri.var.appointment', 'json-eval($.appointment)') + keep('doctor', 'json-eval($.doctor)'),
        keep('patient', 'json-eval($.patient)') + callTo(port, '/fee') + keep('fee', 'json-eval($.actualFee)'),
        json(
          '{"number":$1,"doctor":$2,"patient":$3,"fee":$4,"confirmed":"false","card":"$5"}',
          ...['uri.var.appointment', 'doctor', 'patient', 'fee', 'card'].map(name => `$ctx:${name}`),
        ),
        `${callTo(port, '/settle')}<respond/>`,
      ].join(''),
    }),
    exchanges: [
      [
        ...([POST, JSON_TYPE, '{"cardNo":"{7844}"}', 200] as const),
        '{"got":{"number":1,"doctor":{"name":"Thomas","fee":7000},"patient":{"ssn":"234"},"fee":"7000.0",' +
          '"confirmed":"false","card":"{7844}"}}',
      ],
    ],
  },
  'REST to SOAP, and the answer back to JSON': {
    reactions: {
      '/soap': ({ head, body }) => {
        const isAsked = /soapaction: "urn:getQuote"/i.test(head) && body.includes('<m:symbol>IBM</m:symbol>')
        return [isAsked ? 200 : 400, QUOTE, IN_XML]
      },
    },
    flow: port => ({
      request: `<payloadFactory media-type="xml"><format>
          <m:getQuote xmlns:m="urn:m"><m:symbol>$1</m:symbol></m:getQuote></format>
          ${args("get-property('query.param.symbol')")}</payloadFactory>
        <header name="Action" value="urn:getQuote"/><property name="HTTP_METHOD" value="POST" scope="axis2"/>
        <property name="REST_URL_POSTFIX" scope="axis2" action="remove"/>
        <call><endpoint><address uri="http://127.0.0.1:${port}/soap" format="soap11"/></endpoint></call>
        <payloadFactory media-type="json"><format>{"symbol":"$1","price":$2}</format><args>
          <arg expression="//n:symbol" xmlns:n="urn:q"/><arg expression="//n:last" xmlns:n="urn:q"/></args>
        </payloadFactory><respond/>`,
    }),
    exchanges: [['GET /a/x?symbol=IBM', '', '', 200, '{"symbol":"IBM","price":84.5}']],
  },
  'a SOAP Fault of the backend becomes a status and words in JSON': {
    reactions: { '/x': says(500, FAULT, IN_XML) },
    flow: () => ({
      response: `<filter xpath="get-property('FAULT') = 'TRUE'"><then>${json('{"error":"$1"}', '//faultstring')}
        <property name="HTTP_SC" value="404" scope="axis2"/></then></filter>`,
    }),
    exchanges: [['GET /a/x', '', '', 404, '{"error":"No such order"}']],
  },
  'splitting: each item of an array goes to a service, and the answers come back in order': {
    reactions: { '/check': answerOf(body => ({ ...body, status: 'Accepted' })) },
    flow: port => ({
      request: `<iterate id="it" expression="json-eval($.students)"><target>
          <sequence>${callTo(port, '/check')}</sequence></target></iterate>
        <property name="all" scope="default"><jsonObject/></property>
        <aggregate id="it"><completeCondition><messageCount min="-1" max="-1"/></completeCondition>
          <onComplete expression="json-eval($)" enclosingElementProperty="all"><respond/></onComplete></aggregate>`,
    }),
    exchanges: [
      [
        ...([POST, JSON_TYPE, '{"students":[{"n":"Ram"},{"n":"Niro"}]}', 200] as const),
        '{"jsonObject":[{"n":"Ram","status":"Accepted"},{"n":"Niro","status":"Accepted"}]}',
      ],
    ],
  },
  'a copy for each of two services, whose XML is gathered within one element': {
    reactions: {
      '/a': says(200, '<r><v>1</v></r>', `Content-Type: ${XML_TYPE}\r\n`),
      '/b': says(200, '<r><v>2</v></r>', `Content-Type: ${XML_TYPE}\r\n`),
    },
    flow: port => ({
      request: `<clone id="c">${['/a', '/b']
        .map(path => `<target><sequence>${callTo(port, path)}</sequence></target>`)
        .join('')}</clone><property name="all" scope="default"><all xmlns=""/></property>
        <aggregate id="c"><completeCondition><messageCount min="2" max="2"/></completeCondition>
          <onComplete expression="//v" enclosingElementProperty="all"><respond/></onComplete></aggregate>`,
    }),
    exchanges: [[POST, XML_TYPE, '<q/>', 200, `${DECLARATION}<all xmlns=""><v>1</v><v>2</v></all>`]],
  },
  'each item of a collection is made anew in its place, with its number': {
    flow: () => ({
      request: `<foreach collection="\${payload.items}" parallel-execution="false" update-original="true"
        counter-variable="i"><sequence>${json(`{"double":\${payload.p * 2},"at":\${vars.i}}`)}</sequence></foreach>
        <respond/>`,
    }),
    exchanges: [
      [POST, JSON_TYPE, '{"items":[{"p":1},{"p":2}]}', 200, '{"items":[{"double":2,"at":0},{"double":4,"at":1}]}'],
    ],
  },
  'the token of one service is the credential for the next one': {
    reactions: {
      '/token': ({ body }) => [body === '{"grant":"x"}' ? 200 : 400, '{"access_token":"tok-1"}'],
      '/data': ({ head }) => [200, JSON.stringify(/^authorization: (.*)\r$/im.exec(head)?.[1])],
    },
    flow: port => ({
      request: `<call><endpoint><http method="post" uri-template="http://127.0.0.1:${port}/token"/></endpoint>
          <source type="inline" contentType="application/json">{"grant":"x"}</source>
          <target type="variable">token</target></call>
        <header name="Authorization" scope="transport" expression="\${'Bearer ' + vars.token.access_token}"/>
        <call><endpoint><http method="get" uri-template="http://127.0.0.1:${port}/data"/></endpoint></call><respond/>`,
    }),
    exchanges: [['GET /a/x', '', '', 200, '"Bearer tok-1"']],
  },
  'enriching: an item is added, a member gets another name, and others leave': {
    flow: () => ({
      request: `<enrich><source type="inline">{"t":"c"}</source>
          <target action="child" xpath="json-eval($.s.books)"/></enrich>
        <enrich><source type="inline">new</source><target type="key" xpath="json-eval($.s.old)"/></enrich>
        <enrich><source type="custom" xpath="json-eval($.s.secret,$.s.books[0])"/><target type="body" action="remove"/>
        </enrich><respond/>`,
    }),
    exchanges: [
      [
        ...([POST, JSON_TYPE, '{"s":{"books":[{"t":"a"},{"t":"b"}],"secret":1,"old":2}}', 200] as const),
        '{"s":{"books":[{"t":"b"},{"t":"c"}],"new":2}}',
      ],
    ],
  },
  'a part of an XML body with a default namespace becomes the body': {
    flow: () => ({
      request: `<enrich><source type="custom" xpath="//o:item[o:id='8']" xmlns:o="urn:o"/><target type="body"/></enrich>
        <respond/>`,
    }),
    exchanges: [[POST, XML_TYPE, ORDER, 200, `${DECLARATION}<item xmlns="urn:o"><id>8</id><count>3</count></item>`]],
  },
  'paths go into an element of a default namespace that is a property': {
    flow: () => ({
      request: `<property name="item" expression="//o:item[o:id='8']" type="OM" xmlns:o="urn:o"/>
        <property name="count" expression="$ctx:item//o:count" xmlns:o="urn:o"/>
        <property name="all" expression="sum(//o:count)" xmlns:o="urn:o"/>
        ${json('{"count":$1,"all":$2}', '$ctx:count', '$ctx:all')}<respond/>`,
    }),
    exchanges: [[POST, XML_TYPE, ORDER, 200, '{"count":3,"all":5}']],
  },
  'each element of a default namespace goes to a service as it was': {
    reactions: { '/check': ({ body }) => [200, JSON.stringify({ got: body })] },
    flow: port => ({
      request: `<iterate expression="//o:item" xmlns:o="urn:o"><target>
          <sequence>${callTo(port, '/check')}</sequence></target></iterate>
        <aggregate><onComplete expression="json-eval($.got)"><respond/></onComplete></aggregate>`,
    }),
    exchanges: [
      [
        ...([POST, XML_TYPE, ORDER, 200] as const),
        JSON.stringify([
          `${DECLARATION}<item xmlns="urn:o"><id>7</id><count>2</count></item>`,
          `${DECLARATION}<item xmlns="urn:o"><id>8</id><count>3</count></item>`,
        ]),
      ],
    ],
  },
  'a raised error has words of its own': {
    flow: () => ({
      request: `<filter xpath="\${payload.a &lt; 0}"><then>
        <throwError type="NEGATIVE" errorMessage="\${'bad ' + payload.a}"/></then></filter><respond/>`,
      fault: `${json('{"code":"$1","message":"$2"}', '$ctx:ERROR_CODE', '$ctx:ERROR_MESSAGE')}
        <property name="HTTP_SC" value="422" scope="axis2"/><respond/>`,
    }),
    exchanges: [
      [POST, JSON_TYPE, '{"a":-1}', 422, '{"code":"NEGATIVE","message":"bad -1"}'],
      [POST, JSON_TYPE, '{"a":1}', 200, '{"a":1}'],
    ],
  },
}

for (const [what, { flow, reactions = {}, exchanges }] of Object.entries(EXAMPLES)) {
  test(what, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}'), ...reactions })
    const { gateway } = await startCalls(t, flow(backend.port), backend.port)
    for (const [line, type, body, status, answer] of exchanges) {
      const client = await connectPeer(gateway.port)
      t.after(() => client.destroy())
      const framing = body === '' ? '' : `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n`
      client.send(`${line} HTTP/1.1\r\nHost: gateway\r\n${framing}\r\n${body}`)
      const response = await takeResponse(client)
      assert.deepEqual([response.status, response.body], [status, answer])
    }
  })
}
