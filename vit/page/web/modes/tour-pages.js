// The pages of the tour: what each says, its equation, the line of vit/model.py that does it, and what the stage shows.
// Words in braces are the model's numbers; letters between underscores have their colour in text, picture and equation.

/**
 * @typedef {object} Page
 * @property {string} name  in the address
 * @property {string} title
 * @property {string} text  at most 65 words
 * @property {string} [markup]  the equation
 * @property {string} [code]  a line of vit/model.py
 * @property {string} [covered]  what is drawn in place of the map, and called so
 * @property {boolean} [follows]  it is of the patch in a layer and head
 * @property {boolean} [apart]  the stage is no photo of which a patch could be chosen
 * @property {"first" | "last"} [begins]  the layer that is shown when one comes from the pages before
 * @property {number} [step]  of the pipeline at the foot of the page; else the attention
 */

/** @type {Page[]} */
export const PAGES = [
  {
    name: "question",
    title: "One question",
    text: "A model that knows {knows} answers one question: which of them is this? Of your photo it sees this square alone, resized to {size} pixels. A Vision Transformer reads it as a sentence is read: cut into pieces, which look at one another.",
    covered: "What the model sees of the photo",
    step: 0,
    apart: true,
  },
  {
    name: "patches",
    title: "Cut into patches",
    text: "The square is cut into {patches} patches of {patch} × {patch} pixels, without overlap: the words of the sentence. From here on we follow one of them, at first the one that matters most for the answer. Click another to follow that instead.",
    markup: `<math display="block"><mi>N</mi><mo>=</mo><mfrac><mrow><mi>H</mi><mi>W</mi></mrow><msup><mi>P</mi><mn>2</mn></msup></mfrac><mo>=</mo><mfrac><mrow><mn>{high}</mn><mo>·</mo><mn>{wide}</mn></mrow><msup><mn>{patch}</mn><mn>2</mn></msup></mfrac><mo>=</mo><mn>{patches}</mn></math>`,
    covered: "The photo as {patches} patches",
    step: 1,
  },
  {
    name: "embedding",
    title: "A patch becomes numbers",
    text: "This patch is {pixels} numbers _x_: three colours of {patch} × {patch} pixels. One learnt matrix _E_, the same for every patch, makes {width} numbers of them. Each column of _E_ is a filter that answers to a colour, an edge, a pattern. Below: the filters’ principal components, and where in your photo six of them answer.",
    markup: `<math display="block"><msub><mi class="x">x</mi><mi>p</mi></msub><mi class="e">E</mi></math>`,
    code: "patches = self.projection(images)  # B, D, R, C",
    covered: "The patch, pixel by pixel",
    step: 1,
  },
  {
    name: "position",
    title: "Its place is added",
    text: "So far the patches could stand in any order: the model would not notice. A learnt vector _p_ for each place is added.{joins} Lit: places whose vectors resemble this patch’s; rows and columns show, though nobody told the model of them.",
    markup: `<math display="block"><msub><mi class="z">z</mi><mn>0</mn></msub><mo>=</mo><mo>[</mo><msub><mi class="x">x</mi><mtext>class</mtext></msub><mo>;</mo><msubsup><mi class="x">x</mi><mi>p</mi><mn>1</mn></msubsup><mi class="e">E</mi><mo>;</mo><mo>…</mo><mo>;</mo><msubsup><mi class="x">x</mi><mi>p</mi><mi>N</mi></msubsup><mi class="e">E</mi><mo>]</mo><mo>+</mo><msub><mi class="p">E</mi><mtext class="p">pos</mtext></msub><mspace width="1em"></mspace><mtext>(1)</mtext></math>`,
    code: "z = [self.patch_embedding(images) + patches]  # B, N, D",
    covered: "How alike the places are",
    step: 2,
  },
  {
    name: "qkv",
    title: "A query, a key, a value",
    text: "In layer {layer} the patch’s token _z_ is normed: mean 0, spread 1, then a learnt scale. Head {head} makes three vectors of {headwidth} numbers of it: the query _q_, what it asks; the key _k_, what it is found by; the value _v_, what it hands over. Drag along the layers and see them change.",
    markup: `<math display="block"><mo>[</mo><mi class="q">q</mi><mo>,</mo><mi class="k">k</mi><mo>,</mo><mi class="v">v</mi><mo>]</mo><mo>=</mo><mtext>LN</mtext><mo>(</mo><mi class="z">z</mi><mo>)</mo><msub><mi>U</mi><mtext>qkv</mtext></msub><mspace width="1em"></mspace><mtext>(5)</mtext></math>`,
    code: "q, k, v = self.qkv(z).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)  # each B, H, T, D/H",
    follows: true,
    begins: "first",
  },
  {
    name: "scores",
    title: "Who answers best?",
    text: "The query _q_ is multiplied with the key _k_ of every token, number by number, and summed. Sums of many numbers grow large, and one winner would take all: hence the division by √{headwidth}. Powers of e, divided by their sum, then make shares of 100 %: the attention _a_. Take a pocket calculator; the numbers are the model’s own.",
    markup: `<math display="block"><mi class="a">A</mi><mo>=</mo><mtext>softmax</mtext><mo>(</mo><mi class="q">q</mi><msup><mi class="k">k</mi><mi>⊤</mi></msup><mo>/</mo><msqrt><msub><mi>D</mi><mi>h</mi></msub></msqrt><mo>)</mo><mspace width="1em"></mspace><mtext>(6)</mtext></math>`,
    code: "attention = (q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)  # B, H, T, T",
    follows: true,
  },
  {
    name: "sum",
    title: "It takes what they hand over",
    text: "The patch takes from every token its value _v_, in proportion to the attention _a_: three numbers of the sum are worked out below. All {heads} heads do this at once, each with questions of its own, here side by side; one more matrix mixes what they found. Only here do tokens learn from one another.",
    markup: `<math display="block"><mtext>SA</mtext><mo>(</mo><mi class="z">z</mi><mo>)</mo><mo>=</mo><mi class="a">A</mi><mi class="v">v</mi><mspace width="1em"></mspace><mtext>(7)</mtext></math><math display="block"><mtext>MSA</mtext><mo>(</mo><mi class="z">z</mi><mo>)</mo><mo>=</mo><mo>[</mo><msub><mtext>SA</mtext><mn>1</mn></msub><mo>(</mo><mi class="z">z</mi><mo>)</mo><mo>;</mo><mo>…</mo><mo>;</mo><msub><mtext>SA</mtext><mn>{heads}</mn></msub><mo>(</mo><mi class="z">z</mi><mo>)</mo><mo>]</mo><msub><mi>U</mi><mtext>msa</mtext></msub><mspace width="1em"></mspace><mtext>(8)</mtext></math>`,
    code: "z = attention @ v",
    covered: "What the patch looks at, head by head, layer {layer}",
    follows: true,
    apart: true,
  },
  {
    name: "residual",
    title: "Added, not replaced",
    text: "What the heads found is added to what the token was: the residual. Nothing is overwritten, so that what the token knew stays with it. Below: how long its vector _z_ was, how long what is added is, and by what angle it turned. Bright: patches that the heads of this layer moved far.",
    markup: `<math display="block"><msubsup><mi class="z">z</mi><mi>ℓ</mi><mo>′</mo></msubsup><mo>=</mo><mtext>MSA</mtext><mo>(</mo><mtext>LN</mtext><mo>(</mo><msub><mi class="z">z</mi><mrow><mi>ℓ</mi><mo>−</mo><mn>1</mn></mrow></msub><mo>)</mo><mo>)</mo><mo>+</mo><msub><mi class="z">z</mi><mrow><mi>ℓ</mi><mo>−</mo><mn>1</mn></mrow></msub><mspace width="1em"></mspace><mtext>(2)</mtext></math>`,
    code: "z = z + self.skip(self.attention_scale(msa))  # Eq. 2",
    covered: "How far the heads of layer {layer} moved each patch",
    follows: true,
  },
  {
    name: "mlp",
    title: "Each token alone",
    text: "Then each token is worked on by itself, without a look at the others: {mlp} neurons read it, a GELU silences those below 0, and the rest write back. Again the result is added. Below are the neurons that write most into this patch. Bright: where in the photo the first of them speaks.",
    markup: `<math display="block"><msub><mi class="z">z</mi><mi>ℓ</mi></msub><mo>=</mo><mtext>MLP</mtext><mo>(</mo><mtext>LN</mtext><mo>(</mo><msubsup><mi class="z">z</mi><mi>ℓ</mi><mo>′</mo></msubsup><mo>)</mo><mo>)</mo><mo>+</mo><msubsup><mi class="z">z</mi><mi>ℓ</mi><mo>′</mo></msubsup><mspace width="1em"></mspace><mtext>(3)</mtext></math>`,
    code: "z = z + self.skip(self.mlp_scale(self.mlp(self.mlp_norm(z))))  # Eq. 3",
    covered: "What one neuron of layer {layer} says in each patch",
    follows: true,
    step: 4,
  },
  {
    name: "layers",
    title: "The same, {layers} times",
    text: "Attention and MLP are all there is, {layers} times over, with other weights each time. Under each layer stands what the model would say if it stopped there. Drag along them and watch it make up its mind.",
    code: "for block in self.blocks:",
    covered: "Lit = what {read} looks at, layer {layer}",
    begins: "last",
  },
  {
    name: "answer",
    title: "The answer",
    text: "After the last layer {read} is read, and nothing else. It is normed, and one matrix makes a number, a logit, for each class: below, the largest terms of the first. Powers of e, divided by their sum, make shares of 100 %.",
    markup: `<math display="block"><mi class="y">y</mi><mo>=</mo><mtext>LN</mtext><mo>(</mo><msubsup><mi class="z">z</mi><mi>L</mi><mn>0</mn></msubsup><mo>)</mo><mspace width="1em"></mspace><mtext>(4)</mtext></math><math display="block"><mtext>shares</mtext><mo>=</mo><mtext>softmax</mtext><mo>(</mo><mi class="y">y</mi><mi>W</mi><mo>+</mo><mi>b</mi><mo>)</mo></math>`,
    code: "return self.norm(self._select(z))",
    covered: "Lit = what {read} looks at, layer {layer}",
    begins: "last",
    step: 5,
  },
  {
    name: "distance",
    title: "Near and far",
    text: "How far does a head look? A point for each: the distance to what patches look at, on average in this photo. In layer 1 that is {near} to {far} pixels, in layer {layers} {last-near} to {last-far}. A convolution sees its neighbours only, and farther layer by layer; a head may look anywhere at once.",
    covered: "How far each head looks",
    apart: true,
  },
  {
    name: "sinks",
    title: "Scratch paper",
    text: "Many models misuse a few empty patches as scratch paper: their vectors grow long, everybody looks at them, and maps show spots that mean nothing: sinks. Registers, tokens without a patch, take that over. Bright is a long vector. {sinks}",
    covered: "How long each patch’s vector is, layer {layer}",
    begins: "last",
    apart: true,
  },
  {
    name: "without",
    title: "What if it were gone?",
    text: "This is the patch that matters most for the answer, by the model’s own gradients. Does the answer hang on it? Take it away and see: maps are claims, and claims can be tested. “Which map is right?” tests all of them.",
    covered: "The patch that matters most",
    step: 6,
  },
];
