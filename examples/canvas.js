// A page that shows slices of a large file on a server. A worker (slice-worker.js) opens the file and reads what the page asks for;
// this module draws it. The page has a canvas, and says which file and dataset it shows:
//   <canvas data-url="climate.h5" data-dataset="T"></canvas>
//   <script type="module" src="canvas.js"></script>

const canvas = document.querySelector('canvas');
const worker = new Worker('slice-worker.js', { type: 'module' });

worker.onmessage = ({ data: { values, height, width, requests, bytes, error } }) => {
  if (error) {
    document.title = error;
    return;
  }
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  values.forEach((value, i) => {
    const shade = high > low ? (255 * (value - low)) / (high - low) : 0;
    image.data.set([shade, shade, shade, 255], i * 4);
  });
  context.putImageData(image, 0, 0);
  document.title = `${width} x ${height}: ${requests} requests, ${bytes} bytes`;
};

// The corner of the first image: of the dataset only the chunks are fetched that it touches.
const { url, dataset } = canvas.dataset;
worker.postMessage({ url: new URL(url, document.baseURI).href, dataset, start: [0, 0], count: [64, 96] });
