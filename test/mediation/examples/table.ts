/**
 * What the sequences of this folder do, written from the public documentation of the language: the request of a client,
 * what the backend gets and answers, and what the client gets. A value between slashes is a pattern. `NAME.xml` runs in
 * the request flow, `NAME-out.xml` in the response flow, `NAME-fault.xml` in the fault flow of the same API.
 */

interface ExampleMessage {
  /** `GET /path?query`, or a status. */
  readonly start: string
  /** Fields that must be there; '' for one that must not. */
  readonly fields?: Readonly<Record<string, string>>
  /** JSON is compared as such, XML without white space between elements; left out: any body. */
  readonly body?: string
}

interface ExampleExchange {
  readonly request: ExampleMessage
  /** Requests that the backend gets, in order unless they are parallel, each with its response. */
  readonly backend: readonly (readonly [got: ExampleMessage, answers: ExampleMessage])[]
  readonly response: ExampleMessage
  /** What a line of the log says; left out: anything. */
  readonly logged?: string
}

interface Example {
  readonly name: string
  readonly about: string
  /** Template of the resource, where the sequence uses its variables. */
  readonly resource?: string
  readonly exchanges: readonly ExampleExchange[]
}

const JSON_TYPE = { 'content-type': '/^application\\/json/' }
const ORDER = '{"email":"a@b.example","items":[{"price":2,"count":3},{"price":1.5,"count":2}]}'
const OK: ExampleMessage = { start: '200', fields: { 'content-type': 'application/json' }, body: '{"ok":true}' }
const SOAP = 'http://schemas.xmlsoap.org/soap/envelope/'

function get(target: string, fields: Readonly<Record<string, string>> = {}): ExampleMessage {
  return { start: `GET ${target}`, fields }
}

function post(target: string, body: string, fields: Readonly<Record<string, string>> = {}): ExampleMessage {
  return { start: `POST ${target}`, fields: { 'content-type': 'application/json', ...fields }, body }
}

/** A body that a sequence has made may name its character set. */
function made(target: string, body: string): ExampleMessage {
  return { start: `POST ${target}`, fields: JSON_TYPE, body }
}

/** The backend gets `got`, and its answer reaches the client. */
function passes(request: ExampleMessage, got: ExampleMessage, answer = OK, response = answer): ExampleExchange {
  return { request, backend: [[got, answer]], response }
}

/** The gateway answers itself. */
function answers(request: ExampleMessage, response: ExampleMessage): ExampleExchange {
  return { request, backend: [], response }
}

function json(status: string, body: string): ExampleMessage {
  return { start: status, fields: JSON_TYPE, body }
}

function xml(body: string, type = 'application/xml'): ExampleMessage {
  return { start: '200', fields: { 'content-type': type }, body }
}

/** A body of XML that a sequence has made. */
function madeXml(body: string): ExampleMessage {
  return xml(body, '/^application\\/xml/')
}

const ANSWER = (body: string): ExampleMessage => ({
  start: '200',
  fields: { 'content-type': 'application/json' },
  body,
})

/** The message of the public samples of stock quotes, with several requests. */
function quoteRequests(symbols: readonly string[]): string {
  const requests = symbols.map(symbol => `<m:request><m:symbol>${symbol}</m:symbol></m:request>`).join('')
  const body = `<m:getQuote xmlns:m="http://services.samples">${requests}</m:getQuote>`
  return `<s:Envelope xmlns:s="${SOAP}"><s:Body>${body}</s:Body></s:Envelope>`
}

function quoteResponse(symbol: string): string {
  const quote = `<m:return><m:symbol>${symbol}</m:symbol></m:return>`
  const body = `<m:getQuoteResponse xmlns:m="http://services.samples">${quote}</m:getQuoteResponse>`
  return `<s:Envelope xmlns:s="${SOAP}"><s:Body>${body}</s:Body></s:Envelope>`
}

export const EXAMPLES: readonly Example[] = [
  {
    name: 'correlation-id',
    about: 'Every exchange has a correlation id, which the client gets as well.',
    exchanges: [
      passes(get('/a', { 'x-correlation-id': 'abc' }), get('/a', { 'x-correlation-id': 'abc' }), OK, {
        ...OK,
        fields: { 'x-correlation-id': 'abc' },
      }),
      passes(get('/a'), get('/a', { 'x-correlation-id': '/./' }), OK, { ...OK, fields: { 'x-correlation-id': '/./' } }),
    ],
  },
  {
    name: 'security-headers',
    about: 'Responses have fields that browsers obey, and do not tell the software of the backend.',
    exchanges: [
      passes(
        get('/a'),
        get('/a'),
        { ...OK, fields: { ...OK.fields, server: 'x/1', 'x-powered-by': 'y' } },
        {
          ...OK,
          fields: {
            'strict-transport-security': 'max-age=31536000; includeSubDomains',
            'x-content-type-options': 'nosniff',
            'x-frame-options': 'DENY',
            'x-powered-by': '',
            server: '',
          },
        },
      ),
    ],
  },
  {
    name: 'basic-auth',
    about: 'The backend gets credentials of the gateway.',
    exchanges: [passes(get('/a'), get('/a', { authorization: 'Basic Z2F0ZXdheTpzM2NyZXQ=' }))],
  },
  {
    name: 'rename-header',
    about: 'A field gets another name.',
    exchanges: [
      passes(get('/a', { 'x-legacy-token': 't1' }), get('/a', { 'x-client-token': 't1', 'x-legacy-token': '' })),
    ],
  },
  {
    name: 'rewrite-path',
    about: 'The backend has its resources below /v2.',
    exchanges: [passes(get('/pets/7?limit=5'), get('/v2/pets/7?limit=5'))],
  },
  {
    name: 'method-override',
    about: 'A client that can only POST names its method in a field.',
    exchanges: [
      passes(post('/a', '{}', { 'x-http-method-override': 'PUT' }), {
        start: 'PUT /a',
        fields: { 'x-http-method-override': '' },
        body: '{}',
      }),
      passes(post('/a', '{}'), post('/a', '{}')),
    ],
  },
  {
    name: 'json-to-xml',
    about: 'The client sends JSON, the backend gets XML.',
    exchanges: [
      passes(post('/a', '{"order":{"id":7,"name":"b"}}'), {
        start: 'POST /a',
        fields: { 'content-type': '/^application\\/xml/' },
        body: '/<jsonObject><order><id>7<\\/id><name>b<\\/name><\\/order><\\/jsonObject>/',
      }),
    ],
  },
  {
    name: 'xml-to-json',
    about: 'The backend answers XML, the client gets JSON.',
    exchanges: [
      passes(
        get('/a'),
        get('/a'),
        {
          start: '200',
          fields: { 'content-type': 'application/xml' },
          body: '<order><id>7</id><name>b</name></order>',
        },
        json('200', '{"order":{"id":7,"name":"b"}}'),
      ),
    ],
  },
  {
    name: 'rest-to-soap',
    about: 'A GET becomes a SOAP request, and its response JSON.',
    resource: '/quotes/{symbol}',
    exchanges: [
      passes(
        get('/quotes/IBM'),
        {
          start: 'POST /services/SimpleStockQuoteService',
          fields: { 'content-type': '/^text\\/xml/', soapaction: '/urn:getQuote/' },
          body: `/<(\\w+):Envelope[^>]*${SOAP}[^>]*>.*<(\\w+):getQuote[^>]*>\\s*<\\w+:symbol>IBM</`,
        },
        {
          start: '200',
          fields: { 'content-type': 'text/xml' },
          body: [
            `<s:Envelope xmlns:s="${SOAP}"><s:Body><q:quote xmlns:q="http://services.samples/xsd">`,
            '<q:last>150.5</q:last><q:symbol>IBM</q:symbol></q:quote></s:Body></s:Envelope>',
          ].join(''),
        },
        json('200', '{"symbol":"IBM","price":150.5}'),
      ),
    ],
  },
  {
    name: 'route-by-content',
    about: 'The kind of customer in the body chooses the backend.',
    exchanges: [
      passes(post('/orders', '{"customer":{"type":"gold"}}'), post('/gold/orders', '{"customer":{"type":"gold"}}')),
      passes(
        post('/orders', '{"customer":{"type":"bronze"}}'),
        post('/standard/orders', '{"customer":{"type":"bronze"}}'),
      ),
      answers(post('/orders', '{"customer":{"type":"x"}}'), json('422', '{"error":"unknown type of customer"}')),
    ],
  },
  {
    name: 'route-by-header',
    about: 'Clients of a region get the backend of that region.',
    exchanges: [
      passes(get('/a', { 'x-region': 'eu-west' }), { start: 'GET /europe/a' }),
      passes(get('/a', { 'x-region': 'us' }), get('/a')),
    ],
  },
  {
    name: 'route-by-xpath',
    about: 'Large orders need an approval.',
    exchanges: [
      passes(
        {
          start: 'POST /a',
          fields: { 'content-type': 'application/xml' },
          body: '<order xmlns="http://orders.example"><total>1500</total></order>',
        },
        { start: 'POST /a', fields: { 'x-approval': 'required' }, body: '/1500/' },
      ),
      passes(
        {
          start: 'POST /a',
          fields: { 'content-type': 'application/xml' },
          body: '<order xmlns="http://orders.example"><total>10</total></order>',
        },
        { start: 'POST /a', fields: { 'x-approval': 'none' }, body: '/10/' },
      ),
    ],
  },
  {
    name: 'service-chaining',
    about: 'Two services are asked one after the other; the client gets one answer.',
    exchanges: [
      {
        request: post('/a', '{"customer":"42"}'),
        backend: [
          [{ start: 'GET /customers/42' }, ANSWER('{"name":"Ann"}')],
          [made('/orders/search', '{"customer":"42","limit":10}'), ANSWER('{"orders":[{"id":1},{"id":2}]}')],
        ],
        response: json('200', '{"name":"Ann","orders":[{"id":1},{"id":2}]}'),
      },
    ],
  },
  {
    name: 'parallel-calls',
    about: 'Two services are asked at once, and their prices are one answer.',
    exchanges: [
      {
        request: get('/a'),
        backend: [
          [{ start: 'GET /north/price' }, ANSWER('{"price":10}')],
          [{ start: 'GET /south/price' }, ANSWER('{"price":12}')],
        ],
        response: json('200', '[10,12]'),
      },
    ],
  },
  {
    name: 'split-and-aggregate',
    about: 'Each item is checked by itself, and the answers are one list.',
    exchanges: [
      {
        request: post('/a', '{"items":[{"sku":"a"},{"sku":"b"}]}'),
        backend: [
          [made('/stock', '{"sku":"a"}'), ANSWER('{"sku":"a","stock":3}')],
          [made('/stock', '{"sku":"b"}'), ANSWER('{"sku":"b","stock":0}')],
        ],
        response: json('200', '[{"sku":"a","stock":3},{"sku":"b","stock":0}]'),
      },
    ],
  },
  {
    name: 'split-and-send',
    about: 'Each quote request of a SOAP message is sent by itself; the response flow joins the quotes.',
    exchanges: [
      {
        request: {
          start: 'POST /a',
          fields: { 'content-type': 'text/xml' },
          body: quoteRequests(['IBM', 'SUN']),
        },
        backend: ['IBM', 'SUN'].map(symbol => [
          { start: 'POST /services/SimpleStockQuoteService', body: `/<\\w+:symbol>${symbol}</` },
          { start: '200', fields: { 'content-type': 'text/xml' }, body: quoteResponse(symbol) },
        ]),
        response: {
          start: '200',
          fields: { 'content-type': '/^text\\/xml/' },
          body: '/Envelope.*<(\\w+):getQuoteResponse.*IBM.*<(\\w+):getQuoteResponse.*SUN/',
        },
      },
    ],
  },
  {
    name: 'chained-sends',
    about: 'One service names the customer of an order, and another prices it: <send> chains both.',
    exchanges: [
      {
        request: post('/a', '{"order":7}'),
        backend: [
          [made('/customers', '{"order":7}'), ANSWER('{"customer":"c1"}')],
          [made('/prices', '{"of":"c1"}'), ANSWER('{"price":10}')],
        ],
        response: ANSWER('{"price":10}'),
      },
    ],
  },
  {
    name: 'best-quote',
    about: 'Several services are asked by copies, at most a second long; what has come then is the answer.',
    exchanges: [
      {
        request: post('/a', '{"sku":"a"}'),
        backend: [
          [made('/north/quotes', '{"sku":"a"}'), ANSWER('{"price":10}')],
          [made('/south/quotes', '{"sku":"a"}'), ANSWER('{"price":12}')],
        ],
        response: json('200', '{"quotes":[{"price":10},{"price":12}]}'),
      },
    ],
  },
  {
    name: 'scatter-gather',
    about: 'Two services are asked at once by one mediator.',
    exchanges: [
      {
        request: get('/a'),
        backend: [
          [{ start: 'GET /weather' }, ANSWER('{"sky":"blue"}')],
          [{ start: 'GET /traffic' }, ANSWER('{"roads":"free"}')],
        ],
        response: json('200', '[{"sky":"blue"},{"roads":"free"}]'),
      },
    ],
  },
  {
    name: 'response-cache',
    about: 'A second equal request is answered from the cache.',
    exchanges: [
      passes(get('/prices'), get('/prices'), ANSWER('{"p":1}')),
      answers(get('/prices'), { start: '200', fields: { 'x-cache': 'hit' }, body: '{"p":1}' }),
      passes(get('/prices?x=1'), get('/prices?x=1'), ANSWER('{"p":2}')),
    ],
  },
  {
    name: 'mock',
    about: 'The gateway answers in place of a backend that does not exist yet.',
    resource: '/pets/{petId}',
    exchanges: [answers(get('/pets/7'), json('200', '{"id":"7","status":"available"}'))],
  },
  {
    name: 'error-wording',
    about: 'A backend that cannot be reached is told in the words of this API (its backend refuses connections).',
    exchanges: [answers(get('/a'), { start: '502', fields: JSON_TYPE, body: '/"errors":\\s*\\[.*"code":\\s*"\\d+"/' })],
  },
  {
    name: 'maintenance',
    about: 'Every request is answered with 503 and a time.',
    exchanges: [
      answers(get('/a'), {
        ...json('503', '{"message":"The service is under maintenance."}'),
        fields: { ...JSON_TYPE, 'retry-after': '3600' },
      }),
    ],
  },
  {
    name: 'block-clients',
    about: 'Some clients are not served.',
    exchanges: [
      answers(get('/a', { 'user-agent': 'BadBot/2.1' }), { start: '403', body: '' }),
      passes(get('/a', { 'user-agent': 'curl/8' }), get('/a')),
    ],
  },
  {
    name: 'enrich-body',
    about: 'The body of the request gets a value of the gateway.',
    exchanges: [
      passes(post('/a', '{"id":1,"meta":{"channel":"unknown"}}'), made('/a', '{"id":1,"meta":{"channel":"gateway"}}')),
    ],
  },
  {
    name: 'keep-original',
    about: 'A service decides about the request, which then goes on as it came.',
    exchanges: [
      {
        request: post('/a', '{"amount":5}'),
        backend: [
          [made('/check', '{"amount":5}'), ANSWER('{"allowed":true}')],
          [made('/a', '{"amount":5}'), OK],
        ],
        response: OK,
      },
      {
        request: post('/a', '{"amount":500}'),
        backend: [[made('/check', '{"amount":500}'), ANSWER('{"allowed":false}')]],
        response: { start: '403' },
      },
    ],
  },
  {
    name: 'mask-fields',
    about: 'Responses show the end of a card number only.',
    exchanges: [
      passes(
        get('/a'),
        get('/a'),
        ANSWER('{"name":"Ann","card":"1234567812345678"}'),
        json('200', '{"name":"Ann","card":"************5678"}'),
      ),
    ],
  },
  {
    name: 'script-total',
    about: 'A script adds a total to the order.',
    exchanges: [passes(post('/a', ORDER), made('/a', ORDER.replace(/\}$/, ',"total":9}')))],
  },
  {
    name: 'required-field',
    about: 'A request without a field is refused, in the words of the fault sequence.',
    exchanges: [
      passes(post('/a', '{"email":"a@b.example"}'), post('/a', '{"email":"a@b.example"}')),
      answers(post('/a', '{"name":"x"}'), json('400', '{"problem":"email is missing"}')),
    ],
  },
  {
    name: 'query-to-body',
    about: 'Parameters of the query become the body of a POST.',
    exchanges: [passes(get('/weather?city=Ulm&days=3'), made('/forecast', '{"city":"Ulm","days":3}'))],
  },
  {
    name: 'audit-log',
    about: 'Each request is logged, and passes.',
    exchanges: [
      {
        ...passes(get('/a?b=1'), get('/a?b=1')),
        logged: '/event = request \\| method = GET \\| path = \\/a\\?b=1 \\| api = /',
      },
    ],
  },
  {
    name: 'status-mapping',
    about: 'Nothing found is an empty list.',
    exchanges: [
      passes(get('/a'), get('/a'), { start: '404', body: 'no' }, json('200', '{"items":[]}')),
      passes(get('/a'), get('/a')),
    ],
  },
  {
    name: 'request-date',
    about: 'The backend gets the day of the request.',
    exchanges: [passes(get('/a'), get('/a', { 'x-request-date': '/^\\d{4}-\\d{2}-\\d{2}$/' }))],
  },
  {
    name: 'accept-and-forget',
    about: 'The client does not wait for the backend.',
    exchanges: [
      {
        request: post('/a', '{"event":"x"}'),
        backend: [[made('/events', '{"event":"x"}'), OK]],
        response: { start: '202', body: '' },
      },
    ],
  },
  {
    name: 'property-group',
    about: 'Several fields are set together.',
    exchanges: [
      passes(
        get('/a', { 'x-user': 'ann@acme.example' }),
        get('/a', { 'x-api-name': 'pets', 'x-tenant': 'ann', 'x-user': '' }),
      ),
    ],
  },
  {
    name: 'foreach-prices',
    about: 'Each item of a list is replaced by what a template makes of it.',
    exchanges: [
      passes(
        post('/a', '{"items":[{"sku":"a","x":1},{"sku":"b"}]}'),
        made('/a', '{"items":[{"sku":"a","currency":"EUR"},{"sku":"b","currency":"EUR"}]}'),
      ),
    ],
  },
  {
    name: 'loopback',
    about: 'The response flow runs without a backend.',
    exchanges: [
      answers(get('/a'), { ...json('200', '{"from":"gateway"}'), fields: { ...JSON_TYPE, 'x-flow': 'response' } }),
    ],
  },
  {
    name: 'location-rewrite',
    about: 'A redirection of the backend leads to the address that clients know.',
    exchanges: [
      passes(
        get('/a'),
        get('/a'),
        { start: '302', fields: { location: 'http://internal.example:8080/b?c=1' } },
        { start: '302', fields: { location: 'https://api.example/b?c=1' } },
      ),
      passes(get('/a'), get('/a')),
    ],
  },
  {
    name: 'shared-steps',
    about: 'A sequence runs another one.',
    exchanges: [passes(get('/a'), get('/a', { 'x-content-type-options': 'nosniff', 'x-served-by': 'gateway' }))],
  },
  {
    name: 'rewrite-url',
    about: 'A part of the path is replaced.',
    exchanges: [passes(get('/legacy/a?b=1'), get('/current/a?b=1'))],
  },
  {
    name: 'schema-validation',
    about: 'A body that its schema refuses gets no further. The schema order-schema: an object with the number id.',
    exchanges: [
      passes(post('/a', '{"id":1}'), post('/a', '{"id":1}')),
      answers(post('/a', '{"id":"x"}'), json('400', '{"error":"the order is not valid"}')),
    ],
  },
  {
    name: 'freemarker-report',
    about: 'Templates of FreeMarker make JSON of JSON for the backend, and XML of its XML for the client.',
    exchanges: [
      passes(
        post('/reports', ORDER, { 'x-channel': 'app' }),
        made(
          '/reports',
          JSON.stringify({
            shop: 'Oslo & Co',
            for: 'a@b.example',
            'sent to': '/reports',
            by: 'app',
            rate: 0.25,
            lines: [
              { no: 1, sum: 6 },
              { no: 2, sum: 3 },
            ],
            total: 9,
          }),
        ),
        xml('<people><person id="1"><first_name>Jo</first_name><last_name>D &amp; Sons</last_name></person></people>'),
        madeXml('/<people>\\s*<person n="1">\\s*<name>Jo D &amp; Sons<\\/name>\\s*<\\/person>\\s*<\\/people>$/'),
      ),
      passes(
        post('/reports', '{"email":"\\"}","items":[],"note":"\\"\\n"}'),
        made(
          '/reports',
          JSON.stringify({
            ...{ shop: 'Oslo & Co', for: '"}', 'sent to': '/reports', by: 'web', rate: 0.25, lines: [] },
            ...{ total: 0, note: '"\n' },
          }),
        ),
        xml('<people/>'),
        madeXml('/<people>\\s*<nobody\\/>\\s*<\\/people>$/'),
      ),
    ],
  },
]
